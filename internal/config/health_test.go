package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Probes and lists of exits are read, and the effective config has them too.
func TestProbesReadBackTheSame(t *testing.T) {
	load := func(text string) *Config {
		file := filepath.Join(t.TempDir(), "s.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(`
[role.kv]
command = ["/bin/true"]
watchdog = "10s"
restart_on = [3, "SIGHUP"]
no_restart_on = []
[role.kv.ready]
fd = 9
[role.kv.health]
exec = ["/bin/test", "-e", "/x-{index}"]
interval = "2s"
threshold = 5
`)
	r := &c.Roles[0]
	if r.Ready.FD != 9 || r.Ready.Threshold != 1 || len(r.Health.Exec) != 3 || r.Health.Interval != 2*time.Second ||
		r.Health.Threshold != 5 || r.Watchdog != 10*time.Second || strings.Join(r.RestartOn, " ") != "3 HUP" || len(r.NoRestartOn) != 0 {
		t.Errorf("%+v", r.RoleConfig)
	}
	var printed strings.Builder
	if err := c.Print(&printed); err != nil {
		t.Fatal(err)
	}
	again := load(printed.String())
	if !reflect.DeepEqual(again.Roles[0].Ready, r.Ready) || !reflect.DeepEqual(again.Roles[0].Health, r.Health) ||
		!reflect.DeepEqual(again.Roles[0].RestartOn, r.RestartOn) || len(again.Roles[0].NoRestartOn) != 0 {
		t.Errorf("printed:\n%s", printed.String())
	}
}
