//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

// Workers that cannot work: their role says so, and the one beside it works.
func TestBadWorkers(t *testing.T) {
	t.Parallel()
	d := configure(t, storeConfig("")+`
[role.missing]
command = ["./no-such-program"]

[role.exits]
command = ["@SELF", "@DIR"]
env = { E2E_PLAYS = "worker-exits" }
restart_delay = "10ms"
restart_max_delay = "50ms"
burst = 3

[role.never]
command = ["@SELF", "@DIR"]
env = { E2E_PLAYS = "worker-never-ready" }
start_timeout = "500ms"
restart_delay = "10ms"
restart_max_delay = "50ms"
burst = 3
`)
	d.start()
	for name, want := range map[string]string{
		"missing": "no-such-program",
		"exits":   "3",
		"never":   "ready",
	} {
		eventually.Shows(d.t, name+" fails and says why", func() (bool, string) {
			r := d.role(name)
			ok := r.Leader == "" && r.State != "led" && len(r.Workers) == 3
			said := r.Why
			for _, w := range r.Workers {
				ok = ok && (w.State == "failed" || w.State == "backoff")
				said += " " + w.Why
				if w.LastExit != nil {
					said += " " + w.LastExit.Error
					if w.LastExit.Code != nil {
						said += fmt.Sprint(" ", *w.LastExit.Code)
					}
				}
			}
			return ok && strings.Contains(said, want), fmt.Sprintf("%+v", r)
		})
	}
	eventually.Shows(d.t, "the log has what the worker said", func() (bool, string) {
		out, _ := d.try("logs", "exits/0", "-n", "50")
		return strings.Contains(out, "cannot find my settings"), out
	})
	before := d.whole("kv")
	l := write(t, d.url, 1)
	l.more(3)
	kill(t, before.LeaderPID, syscall.SIGKILL)
	d.successor("kv", before)
	l.close()
	if state := d.end(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("standbyd ended with %v", state)
	}
	d.gone()
}

// Plugins that cannot work: status says so, and the role is led all the same,
// with the good plugin beside them at work.
func TestBadPlugins(t *testing.T) {
	t.Parallel()
	config := `
[role.idle]
command = ["@SELF", "@DIR"]
env = { E2E_PLAYS = "worker-idle" }
workers = 2
hook_timeout = "500ms"
failovers = 1000
burst = 1000
`
	bad := map[string]string{
		"missing": "no-such-plugin",
		"junk":    "",
		"exits":   "",
		"crashes": "",
		"hangs":   "",
		"fails":   "the other side says no",
	}
	plugin := func(name, command string) {
		config += fmt.Sprintf("\n[[role.idle.plugin]]\nname = %q\ncommand = %s\nenv = { E2E_PLAYS = \"plugin-%[1]s\", E2E = \"@DIR\" }\n", name, command)
	}
	for name := range bad {
		if name == "missing" {
			plugin(name, `["./no-such-plugin"]`)
		} else {
			plugin(name, `["@SELF"]`)
		}
	}
	plugin("message", `["@SELF"]`)
	plugin("good", `["@SELF"]`)
	d := configure(t, config)
	d.start()
	before := d.whole("idle")
	for i := range 3 {
		for name, want := range bad {
			eventually.Shows(d.t, "plugin "+name+" is shown with its error", func() (bool, string) {
				for _, p := range d.role("idle").Plugins {
					if p.Name == name {
						return p.LastError != "" && strings.Contains(p.LastError, want), fmt.Sprintf("%+v", p)
					}
				}
				return false, "not there"
			})
		}
		d.pluginPID("idle", "good")
		d.pluginPID("idle", "message")
		if r := d.whole("idle"); r.Term != before.Term {
			t.Errorf("bad plugins cost the leadership: %+v", r)
		}
		if i < 2 {
			kill(t, before.LeaderPID, syscall.SIGKILL)
			d.successor("idle", before)
			before = d.whole("idle")
		}
	}
	d.verify("idle")
	if state := d.end(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("standbyd ended with %v", state)
	}
	d.gone()
}

// A plugin that is killed comes back and is told who leads.
func TestKillPlugin(t *testing.T) {
	t.Parallel()
	d := configure(t, storeConfig(""))
	d.start()
	before := d.whole("kv")
	pid := d.pluginPID("kv", "snapshot")
	for range 3 {
		kill(t, pid, syscall.SIGKILL)
		old := pid
		eventually.Shows(d.t, "another process of the plugin leads", func() (bool, string) {
			pid = d.pluginPID("kv", "snapshot")
			return pid != old, fmt.Sprint(pid)
		})
	}
	if after := d.whole("kv"); after.Term != before.Term {
		t.Errorf("term %d follows %d", after.Term, before.Term)
	}
	d.verify("kv")
}

// A plugin with a veto: whom it refuses never leads, however often the others die.
func TestVeto(t *testing.T) {
	t.Parallel()
	d := configure(t, `
[role.idle]
command = ["@SELF", "@DIR"]
env = { E2E_PLAYS = "worker-idle" }
workers = 3
failovers = 1000
burst = 1000
restart_delay = "20ms"

[[role.idle.plugin]]
name = "vetoes"
command = ["@SELF"]
env = { E2E_PLAYS = "plugin-vetoes", E2E = "@DIR" }
`)
	d.start()
	before := d.whole("idle")
	for range 4 {
		kill(t, before.LeaderPID, syscall.SIGKILL)
		d.successor("idle", before)
		before = d.whole("idle")
	}
	for _, r := range d.history("idle") {
		if r.To == "idle-0" {
			t.Errorf("idle-0 led: %+v", r)
		}
	}
	d.verify("idle")
}

// A leader whose process lives and whose work has stopped is replaced, if it
// reports progress at all.
func TestWedgedLeader(t *testing.T) {
	t.Parallel()
	d := configure(t, `
[role.wedge]
command = ["@SELF", "@DIR"]
env = { E2E_PLAYS = "worker-wedges" }
workers = 3
progress_timeout = "500ms"
drain_timeout = "300ms"
failovers = 1000
burst = 1000
restart_delay = "20ms"
`)
	d.start()
	var last roleStatus
	for range 3 {
		eventually.Shows(d.t, "the next one leads", func() (bool, string) {
			r := d.role("wedge")
			ok := r.State == "led" && r.Token > last.Token && r.LeaderPID != last.LeaderPID
			if ok {
				last = r
			}
			return ok, fmt.Sprintf("%+v", r)
		})
	}
	d.verify("wedge")
}

// Too many leaders die: the role is held, says why and what to type.
func TestHeldRole(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, strings.Replace(storeConfig(`cool_down = "1h"`), "failovers = 1000", "failovers = 3", 1), 1)
	for range 3 {
		l.more(3)
		kill(t, before.LeaderPID, syscall.SIGKILL)
		before = d.successor("kv", before)
	}
	l.more(3) // the last one may still lead
	kill(t, before.LeaderPID, syscall.SIGKILL)
	eventually.Shows(d.t, "the role is held and says what to type", func() (bool, string) {
		r := d.role("kv")
		return r.State == "held" && r.Leader == "" && strings.Contains(r.Why, "ack"), fmt.Sprintf("%+v", r)
	})
	acked := l.total()
	d.run("ack", "kv")
	after := d.whole("kv")
	if after.Term != before.Term+1 {
		t.Errorf("term %d follows %d", after.Term, before.Term)
	}
	l.more(3)
	if l.total() <= acked {
		t.Error("no write after ack")
	}
	l.close()
	d.verify("kv")
}
