//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
)

// roles is the status of every role. Asked for over the control socket: a
// program of its own for each look would keep the processors busy.
func (d *daemon) roles() map[string]supervisor.RoleStatus {
	d.t.Helper()
	var s supervisor.Snapshot
	var err error
	eventually.Holds(d.t, "standbyd tells its status", func() bool {
		s, err = api.NewClient(filepath.Join(d.dir, "run", api.SocketName)).Status(context.Background())
		return err == nil || !errors.Is(err, io.EOF) // it gives up a connection that has waited for a processor too long
	})
	if err != nil {
		d.t.Fatal(err)
	}
	roles := map[string]supervisor.RoleStatus{}
	for _, r := range s.Roles {
		roles[r.Name] = r
	}
	return roles
}

// pids are those of all workers that run, by name.
func (d *daemon) pids() map[string]int {
	pids := map[string]int{}
	for _, r := range d.roles() {
		for _, w := range r.Workers {
			if w.PID != 0 {
				pids[w.Name] = w.PID
			}
		}
	}
	return pids
}

// whole waits until every role is led and every other worker stands by.
func (d *daemon) whole() {
	d.t.Helper()
	eventually.Holds(d.t, "all workers are ready", func() bool {
		for _, r := range d.roles() {
			for _, w := range r.Workers {
				if r.Leader == "" || !w.Ready {
					return false
				}
			}
		}
		return true
	})
}

// TestA17_ReloadDoesTheWrongAmount: each edit restarts the workers that it must
// and no other; the plan has said so; a second reload does nothing; and unless
// the edit is about the segment itself, the role never loses its leadership
// otherwise than by a switchover.
func TestA17_ReloadDoesTheWrongAmount(t *testing.T) {
	t.Parallel()
	const head = "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n"
	const kv = "[role.kv]\ncommand = [$TW]\nworkers = 3\n"
	const other = "[role.other]\ncommand = [$TW]\nworkers = 2\n"
	d := newDaemon(t, kv+other)
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	all := []string{"kv-0", "kv-1", "kv-2"}
	for _, edit := range []struct {
		what, text string
		restarted  []string
		appeared   []string
	}{
		{"nothing", kv + other, nil, nil},
		{"a comment", "# hello\n" + kv + other, nil, nil},
		{"the log's size", kv + "log_max_size = \"1MiB\"\n" + other, nil, nil},
		{"a stop limit", kv + "stop_timeout = \"11s\"\n" + other, nil, nil},
		{"arguments", "[role.kv]\ncommand = [$TW, \"-fork\", \"0\"]\nworkers = 3\n" + other, all, nil},
		{"the environment", kv + "env = { A = \"1\" }\n" + other, all, nil},
		{"the same environment, written otherwise", kv + "[role.kv.env]\nA = \"1\"\n" + other, nil, nil},
		{"one worker more", strings.Replace(kv, "3", "4", 1) + "env = { A = \"1\" }\n" + other, nil, []string{"kv-3"}},
		{"the order of the roles", other + strings.Replace(kv, "3", "4", 1) + "env = { A = \"1\" }\n", nil, nil},
		{"two workers less", strings.Replace(kv, "3", "2", 1) + "env = { A = \"1\" }\n" + other, []string{"kv-2", "kv-3"}, nil},
		{"a role more", strings.Replace(kv, "3", "2", 1) + "env = { A = \"1\" }\n" + other + "[role.third]\ncommand = [$TW]\nworkers = 1\n", nil, []string{"third-0"}},
		{"a role under another name", strings.Replace(kv, "3", "2", 1) + "env = { A = \"1\" }\n" + strings.Replace(other, "role.other", "role.another", 1), []string{"other-0", "other-1", "third-0"}, []string{"another-0", "another-1"}},
		{"the tick", strings.Replace(kv, "3", "2", 1) + "env = { A = \"1\" }\ntick = \"90ms\"\n" + strings.Replace(other, "role.other", "role.another", 1), []string{"kv-0", "kv-1"}, nil},
	} {
		before, tokens := d.pids(), d.roles()
		d.configure(head + edit.text)
		var plan supervisor.Plan
		if err := json.Unmarshal([]byte(d.must("reload", "--plan", "-o", "json")), &plan); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(d.pids(), before) {
			t.Fatalf("%s: the plan alone changed something", edit.what)
		}
		var planned []string
		for _, r := range plan.Roles {
			planned = append(planned, r.Restarted...)
		}
		d.must("reload")
		d.whole()
		after := d.pids()
		var restarted, appeared []string
		for name, pid := range before {
			if after[name] != pid {
				restarted = append(restarted, name)
			}
		}
		for name := range after {
			if before[name] == 0 {
				appeared = append(appeared, name)
			}
		}
		slices.Sort(planned)
		slices.Sort(restarted)
		slices.Sort(appeared)
		if !slices.Equal(restarted, edit.restarted) || !slices.Equal(planned, edit.restarted) || !slices.Equal(appeared, edit.appeared) {
			t.Errorf("%s: restarted %v, planned %v, new %v; want %v and %v", edit.what, restarted, planned, appeared, edit.restarted, edit.appeared)
		}
		for name, r := range d.roles() {
			old, ok := tokens[name]
			if ok && len(edit.restarted) > 0 && edit.what != "the tick" && r.Token.Generation() == old.Token.Generation() && r.Token != old.Token &&
				(r.LastFailover == nil || r.LastFailover.Reason != "switchover") {
				t.Errorf("%s: %s changed its leader by %+v", edit.what, name, r.LastFailover)
			}
		}
		if out := d.must("reload"); !strings.Contains(out, "the config is as it was") || !maps.Equal(d.pids(), after) {
			t.Errorf("%s: a second reload printed %q and changed %v to %v", edit.what, out, after, d.pids())
		}
	}
}

// TestA17_BrokenReload: a file that is broken, or a program that cannot be
// started, leaves a role that works as it is; the mended file then needs no
// further restart of the workers that stayed.
func TestA17_BrokenReload(t *testing.T) {
	t.Parallel()
	const head = "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n"
	const kv = "[role.kv]\ncommand = [$TW]\nworkers = 3\n"
	d := newDaemon(t, kv)
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	before := d.pids()
	d.configure(head + kv + "graces = 4\n")
	out, err := d.run("reload")
	if err == nil || !strings.Contains(out, filepath.Base(d.config)+":7:1: role.kv.graces") || !strings.Contains(out, "nothing was changed") || !maps.Equal(d.pids(), before) {
		t.Errorf("a broken file: %v, %s\nworkers %v, were %v", err, out, d.pids(), before)
	}
	d.configure(head + "[role.kv]\ncommand = [\"$DIR/not-there\"]\nworkers = 3\n")
	out, err = d.run("reload")
	if err == nil || !strings.Contains(out, "did not get ready") || !strings.Contains(out, "not-there") {
		t.Errorf("a program that is not there: %v, %s", err, out)
	}
	role := d.roles()["kv"]
	left := 0
	for _, w := range role.Workers {
		if w.PID != 0 && w.PID == before[w.Name] {
			left++
		}
	}
	if left != 2 || role.Leader == "" || role.LeaderPID != before[role.Leader] {
		t.Errorf("%d of 3 workers stayed, %+v", left, role)
	}
	d.configure(head + kv)
	d.must("reload")
	d.whole()
	changed := 0
	for name, pid := range d.pids() {
		if before[name] != pid {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d workers were started anew by the mended file, want the one that was lost", changed)
	}
}
