//go:build linux

package conformance

import (
	"debug/buildinfo"
	"fmt"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/internal/proc"
)

// TestA05_InnocentProcessIsKilled: standbyd, its plugin, the leader and a
// standby die, and strangers get the pids of the last three. The next standbyd
// takes none of them for its own, says so, harms none, not even when it stops,
// and makes the role whole again.
func TestA05_InnocentProcessIsKilled(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	d := newDaemon(t, `[role.kv]
command = [$TW, "-leads", "$DIR/leads"]
workers = 3
[[role.kv.plugin]]
name = "told"
command = [$PLUGIN, "$DIR/told"]
`)
	var strangers []*stranger
	var victims []int
	for range 5 {
		d.must("wait", "kv", "-T", "1m")
		d.whole()
		before := d.roles()["kv"]
		led := len(d.leaderships())
		victims = []int{before.LeaderPID, 0, d.pluginLeads()}
		for _, w := range before.Workers {
			if w.PID != before.LeaderPID {
				victims[1] = w.PID
			}
		}
		d.kill()
		bury(t, victims[2]) // it ends by itself
		endOf(t, victims[1])
		endOf(t, victims[0])
		d.led(led + 1)
		strangers = nil
		for _, pid := range victims {
			if s := takePID(t, pid); s != nil {
				strangers = append(strangers, s)
			}
		}
		d.start()
		if len(strangers) == len(victims) {
			break
		}
	}
	if len(strangers) < len(victims) {
		t.Skip("pids could not be had a second time")
	}
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	d.listed()
	for i, s := range strangers {
		s.unharmed(d)
		if i < 2 && !strings.Contains(d.output.String(), fmt.Sprintf("(pid %d): this pid is not ours any more (it started at another time)", s.id.PID)) {
			t.Errorf("it is not said that pid %d is another process", s.id.PID)
		}
	}
	r, led := d.roles()["kv"], len(d.leaderships())
	endOf(t, r.LeaderPID)
	d.led(led + 1)
	d.whole()
	d.pluginLeads()
	for _, s := range strangers {
		s.unharmed(d)
	}
	d.must("shutdown")
	if code := d.wait(); code != 0 {
		t.Errorf("standbyd ended with %d", code)
	}
	for _, s := range strangers {
		if v := proc.Judge(s.id); v != proc.Alive {
			t.Errorf("the stranger with pid %d is %v after the stop", s.id.PID, v)
		}
	}
}

// TestA05_GoPluginVersion: up to 1.6.1 go-plugin killed by pid alone what it
// attached to again.
func TestA05_GoPluginVersion(t *testing.T) {
	info, err := buildinfo.ReadFile(standbyd)
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range info.Deps {
		if dep.Path != "github.com/hashicorp/go-plugin" {
			continue
		}
		var major, minor, patch int
		if n, err := fmt.Sscanf(dep.Version, "v%d.%d.%d", &major, &minor, &patch); n != 3 {
			t.Fatalf("version %q: %v", dep.Version, err)
		}
		if major*1e6+minor*1e3+patch < 1_006_002 {
			t.Errorf("standbyd has go-plugin %s, want 1.6.2 or later", dep.Version)
		}
		return
	}
	t.Error("standbyd does not have go-plugin at all, or under another name")
}
