package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
)

// part writes a file of config.d.
func (d *daemon) part(name, text string) {
	d.t.Helper()
	folder := filepath.Join(d.dir, "config.d")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// names are the roles at work.
func (d *daemon) names() (names []string) {
	d.t.Helper()
	var s supervisor.Snapshot
	if err := json.Unmarshal([]byte(d.must("status", "-o", "json")), &s); err != nil {
		d.t.Fatal(err)
	}
	for _, r := range s.Roles {
		names = append(names, r.Name)
	}
	return names
}

// TestPartsAreReloaded: check, the plan, reload and SIGHUP see config.d; a
// broken part changes nothing, and the daemon is still found.
func TestPartsAreReloaded(t *testing.T) {
	d := start(t, "workers = 1\n")
	d.must("wait", "kv", "-T", "50s")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.part("web.toml", fmt.Sprintf("[role.web]\ncommand = [%q]\nworkers = 1\n", exe))
	web := filepath.Join(d.dir, "config.d", "web.toml")
	if out := d.must("check"); !strings.Contains(out, "workers = 1 ") || !strings.Contains(out, "# "+web+":3\n") || !strings.Contains(out, "# default\n") {
		t.Errorf("check:\n%s", out)
	}
	var checked struct {
		Files  []string
		Config []struct {
			Key, From, File string
			Value           any
			Line            int
		}
	}
	if err := json.Unmarshal([]byte(d.must("check", "-o", "json")), &checked); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range checked.Config {
		if s.Key == "role.web.workers" && s.From == "file" && s.File == web && s.Line == 3 && s.Value == 1.0 || s.Key == "role.web.grace" && s.From == "default" && s.File == "" {
			found++
		}
	}
	if found != 2 || len(checked.Files) != 2 || checked.Files[1] != web {
		t.Errorf("check -o json: %+v", checked)
	}
	if out := d.must("reload", "--plan"); out != "web: is new\nweb would be started\n" || len(d.names()) != 1 {
		t.Errorf("the plan: %s, and %q run", out, d.names())
	}
	if out := d.must("reload"); out != "web: is new\nweb is started\n" || len(d.names()) != 2 {
		t.Errorf("reload: %s, and %q run", out, d.names())
	}
	d.part("later.toml", "role.kv.workers = 2\nrole.kv.no_such = 1\n")
	code, _, stderr := d.call("reload")
	if want := filepath.Join(d.dir, "config.d", "later.toml") + ":2:9: role.kv.no_such: unknown key"; code != exitUsage || !strings.Contains(stderr, want) || !strings.Contains(stderr, "nothing was changed") {
		t.Errorf("a broken part: exit %d, %s; want %s", code, stderr, want)
	}
	if err := os.Remove(filepath.Join(d.dir, "config.d", "later.toml")); err != nil {
		t.Fatal(err)
	}
	d.part("third.toml", fmt.Sprintf("[role.third]\ncommand = [%q]\nworkers = 1\n", exe))
	d.signals <- syscall.SIGHUP
	eventually.Holds(t, "SIGHUP starts the role of a new part", func() bool { return len(d.names()) == 3 })
}
