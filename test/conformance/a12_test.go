//go:build linux

package conformance

import (
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestA12_EndsWhileNobodyWatches: workers die while there is no standbyd. A
// standby leads as soon as the leader is dead, and the next standbyd starts
// those that are missing.
func TestA12_EndsWhileNobodyWatches(t *testing.T) {
	for _, c := range []struct {
		name string
		dies func(leader bool) bool
		sig  syscall.Signal
		long bool // only in the long form
	}{
		{"the leader", func(leader bool) bool { return leader }, syscall.SIGKILL, false},
		{"the standbys", func(leader bool) bool { return !leader }, syscall.SIGKILL, true},
		{"everybody", func(bool) bool { return true }, syscall.SIGKILL, false},
		{"the leader, in order", func(leader bool) bool { return leader }, syscall.SIGTERM, true},
	} {
		if c.long && os.Getenv("CONFORMANCE") == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t, "[role.kv]\ncommand = [$TW, \"-leads\", \"$DIR/leads\"]\nworkers = 3\nrestart_delay = \"1ms\"\n")
			d.must("wait", "kv", "-T", "1m")
			d.whole()
			before, pids, led := d.roles()["kv"], d.pids(), len(d.leaderships())
			d.kill()
			dead := 0
			for _, r := range d.running() {
				if c.dies(r.PID == before.LeaderPID) {
					dead++
					delete(pids, r.worker)
					syscall.Kill(r.PID, c.sig)
					eventually.Holds(t, "it is dead", func() bool { return !r.alive() })
				}
			}
			next := before.LeaderPID
			if c.dies(true) && dead < 3 {
				next = d.led(led + 1).pid
			}
			d.start()
			d.must("wait", "kv", "-T", "1m")
			d.whole()
			after := d.roles()["kv"]
			if n := len(d.listed()); n != 3 {
				t.Errorf("%d workers run", n)
			}
			if dead < 3 && after.LeaderPID != next {
				t.Errorf("pid %d leads, want %d", after.LeaderPID, next)
			}
			if c.dies(true) == (after.Token == before.Token) {
				t.Errorf("token %s after %s", after.Token, before.Token)
			}
			now := d.pids()
			for worker, pid := range pids {
				if now[worker] != pid {
					t.Errorf("%s, which lived, was replaced", worker)
				}
			}
			d.leaderships()
		})
	}
}

// TestA12_StopIsCutShort: standbyd is killed in the middle of a stop, of one
// worker, of a role, of itself, or of what is one too many. The next one undoes
// it: the role is led and whole, by workers that are asked for; and then stops
// what it is told to.
func TestA12_StopIsCutShort(t *testing.T) {
	const role = "[role.kv]\nworkers = 3\nrestart_delay = \"1ms\"\n"
	const patient = "stop_timeout = \"10m\"\ndrain_timeout = \"9m\"\n"
	for _, c := range []struct {
		name, flags string
		verb        []string
		long        bool // only in the long form
	}{
		{"a worker", `, "-ignore-term"`, []string{"stop", "kv/0"}, true},
		{"the leader", `, "-ignore-term"`, []string{"stop", "kv/leader"}, true},
		{"a role", `, "-ignore-term"`, []string{"stop", "kv"}, false},
		{"a role whose leader drains", `, "-drain", "2s"`, []string{"stop", "kv"}, true},
		{"standbyd", `, "-ignore-term"`, []string{"shutdown"}, false},
		{"standbyd, while the leader drains", `, "-drain", "2s"`, []string{"shutdown"}, false},
		{"two of three", `, "-ignore-term"`, []string{"scale", "kv", "1"}, true},
		{"a restart", `, "-ignore-term"`, []string{"restart", "kv"}, true},
	} {
		if c.long && os.Getenv("CONFORMANCE") == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			command := `command = [$TW, "-leads", "$DIR/leads"` + c.flags + "]\n"
			d := newDaemon(t, role+command+patient)
			d.must("wait", "kv", "-T", "1m")
			d.whole()
			pids := d.pids()
			verb := exec.Command(standbyd, append([]string{"-c", d.config}, c.verb...)...)
			if err := verb.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { verb.Process.Kill(); verb.Wait() }()
			eventually.Holds(t, "somebody is being stopped", func() bool {
				for _, w := range d.roles()["kv"].Workers {
					if s := string(w.State); s == "stopping" || s == "draining" {
						return true
					}
				}
				return false
			})
			d.kill()
			d.start()
			d.must("wait", "kv", "-T", "1m")
			d.whole()
			if n := len(d.listed()); n != 3 {
				t.Errorf("%d workers run", n)
			}
			if strings.Contains(c.flags, "ignore") && !maps.Equal(d.pids(), pids) {
				t.Errorf("workers %v, were %v, and none of them has ended", d.pids(), pids)
			}
			// And nothing of it is in the way of what is asked for now.
			d.configure(folders + role + command + "stop_timeout = \"500ms\"\ndrain_timeout = \"400ms\"\n")
			d.must("reload")
			d.must("stop", "kv")
			if left := d.running(); len(left) > 0 {
				t.Errorf("after a stop there are %v", left)
			}
			d.must("start", "kv")
			d.must("wait", "kv", "-T", "1m")
			d.leaderships()
		})
	}
}
