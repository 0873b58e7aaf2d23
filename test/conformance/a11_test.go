//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// entries is the list of workers in a role's folder, as far as the test edits it.
type entries struct {
	Generation uint64           `json:"generation"`
	Segment    string           `json:"segment"`
	Workers    []map[string]any `json:"workers"`
}

// TestA11_LiveWorkerIsJudgedLeaked: standbyd is killed, and what it has
// written down is lost, stale or damaged. The next one adopts whom it can tell,
// ends all others of its roles first and names them, leaves alone what may be
// somebody else's, and two never lead. In the long form also with cgroups.
func TestA11_LiveWorkerIsJudgedLeaked(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, s *spoiled)
		stay  int    // of the three workers
		said  string // by the next standbyd
		long  bool   // only in the long form
	}{
		{"no list", func(t *testing.T, s *spoiled) { os.Remove(s.list) }, 0, "is on no list: ended", false},
		{"an empty list", func(t *testing.T, s *spoiled) { s.write(t, nil) }, 0, "read the list of workers", true},
		{"half a list", func(t *testing.T, s *spoiled) { s.write(t, s.now[:len(s.now)/2]) }, 0, "read the list of workers", false},
		{"an earlier list", func(t *testing.T, s *spoiled) { s.write(t, s.earlier) }, 2, "is on no list: ended", false},
		{"a list of another generation", func(t *testing.T, s *spoiled) {
			s.edit(t, func(e *entries) { e.Generation++ })
		}, 0, "cannot be adopted and are ended", true},
		{"a list with the pid of somebody else", func(t *testing.T, s *spoiled) {
			s.edit(t, func(e *entries) { e.Workers[1]["identity"].(map[string]any)["pid"] = s.bystander.PID })
		}, 2, "is not ours any more", false},
		{"a list with places that there cannot be", func(t *testing.T, s *spoiled) {
			s.edit(t, func(e *entries) { e.Workers[0]["index"], e.Workers[2]["index"] = -1, 1<<40 })
		}, 1, "is on no list: ended", true},
		{"a list with one worker twice", func(t *testing.T, s *spoiled) {
			s.edit(t, func(e *entries) { e.Workers[2]["identity"] = e.Workers[0]["identity"] })
		}, 2, "is on no list: ended", true},
		// Workers that miss their segment also end by themselves.
		{"no segment", func(t *testing.T, s *spoiled) { os.Remove(s.was.Segment) }, 0, "", true},
		{"no runtime folder", func(t *testing.T, s *spoiled) { os.RemoveAll(filepath.Join(s.d.dir, "run")) }, 0, "", false},
		{"no state folder", func(t *testing.T, s *spoiled) { os.RemoveAll(filepath.Join(s.d.dir, "state")) }, 3, "", false},
	} {
		if c.long && os.Getenv("CONFORMANCE") == "" {
			continue
		}
		each(t, c.name, func(t *testing.T, cgroups string) {
			d := newDaemon(t, cgroups+"[role.kv]\ncommand = [$TW, \"-leads\", \"$DIR/leads\"]\nworkers = 3\nrestart_delay = \"1ms\"\n")
			d.must("wait", "kv", "-T", "1m")
			d.whole()
			s := readList(t, d)
			for _, r := range d.running() { // one is another process than in the earlier list
				if d.pids()[r.worker] != d.roles()["kv"].LeaderPID {
					d.must("restart", r.worker)
					break
				}
			}
			d.whole()
			s.now = readList(t, d).earlier
			old := d.listed()
			led := len(d.leaderships())
			d.kill()
			c.spoil(t, s)
			d.start()
			eventually.Holds(t, "standbyd answers", func() bool {
				d.never2(d.running())
				_, err := d.run("status")
				return err == nil
			})
			d.whole()
			pids := d.pids()
			if n := len(d.listed()); n != 3 {
				t.Errorf("%d workers run", n)
			}
			stay := 0
			for _, r := range old {
				switch {
				case pids[r.worker] == r.PID:
					stay++
				case r.alive():
					t.Errorf("%s (pid %d) lives beside %v", r.worker, r.PID, pids)
				case c.said != "" && !strings.Contains(d.output.String(), fmt.Sprintf("pid %d", r.PID)):
					t.Errorf("it is not said that %s (pid %d) was ended", r.worker, r.PID)
				}
			}
			if stay != c.stay {
				t.Errorf("%d of %v stay, want %d; there are %v", stay, old, c.stay, pids)
			}
			if cgroups != "" && !strings.Contains(d.output.String(), c.said) {
				t.Errorf("it does not say %q", c.said)
			}
			if n := len(d.leaderships()); c.stay == 3 && n != led {
				t.Errorf("%d leaderships, want %d", n, led)
			}
			if v := proc.Judge(s.bystander); v != proc.Alive {
				t.Errorf("somebody else's process is %v", v)
			}
		})
	}
}

// each runs a test without cgroups, and in the long form also with them: what
// they find is ended before anything else.
func each(t *testing.T, name string, test func(t *testing.T, cgroups string)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		test(t, "cgroups = \"off\"\n")
	})
	if os.Getenv("CONFORMANCE") != "" {
		t.Run(name+", with cgroups", func(t *testing.T) {
			t.Parallel()
			test(t, "")
		})
	}
}

// TestA11_RoleThatIsGone: the list of a role is lost, and the role is no longer
// in the config: nothing of it goes on.
func TestA11_RoleThatIsGone(t *testing.T) {
	t.Parallel()
	const kv = "cgroups = \"off\"\n[role.kv]\ncommand = [$TW]\nworkers = 1\n"
	d := newDaemon(t, kv+"[role.old]\ncommand = [$TW]\nworkers = 2\n")
	d.must("wait", "old", "-T", "1m")
	d.whole()
	old := slices.DeleteFunc(d.listed(), func(r running) bool { return strings.HasPrefix(r.worker, "kv") })
	d.kill()
	if err := os.Remove(filepath.Join(d.dir, "run/roles/old/workers.json")); err != nil {
		t.Fatal(err)
	}
	d.configure(folders + kv)
	d.start()
	d.must("wait", "kv", "-T", "1m")
	d.listed()
	for _, r := range old {
		if r.alive() || !strings.Contains(d.output.String(), fmt.Sprintf("pid %d", r.PID)) {
			t.Errorf("%s (pid %d) lives, or its end is not told", r.worker, r.PID)
		}
	}
}

// spoiled is what standbyd has written down.
type spoiled struct {
	d         *daemon
	list      string // path
	earlier   []byte
	now       []byte
	was       entries
	bystander proc.Identity
}

func readList(t *testing.T, d *daemon) *spoiled {
	t.Helper()
	s := &spoiled{d: d, list: filepath.Join(d.dir, "run/roles/kv/workers.json")}
	var err error
	if s.earlier, err = os.ReadFile(s.list); err == nil {
		err = json.Unmarshal(s.earlier, &s.was)
	}
	if err != nil || len(s.was.Workers) != 3 {
		t.Fatalf("%v: %s", err, s.earlier)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s.bystander = identity(t, cmd.Process.Pid)
	return s
}

func (s *spoiled) write(t *testing.T, b []byte) {
	if err := os.WriteFile(s.list, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *spoiled) edit(t *testing.T, change func(*entries)) {
	var e entries
	dec := json.NewDecoder(strings.NewReader(string(s.now)))
	dec.UseNumber() // start times are beyond what a float holds
	if err := dec.Decode(&e); err != nil {
		t.Fatal(err)
	}
	change(&e)
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, b)
}
