package supervisor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

func init() {
	// It does not mind its segment, and says that it is past the stage.
	workers["lasting"] = func() int { note("up %d", os.Getpid()); time.Sleep(time.Hour); return 0 }
}

func killAndSee(t *testing.T, id proc.Identity) {
	t.Helper()
	syscall.Kill(id.PID, syscall.SIGKILL)
	eventually.Holds(t, "it is gone", func() bool { return proc.Judge(id) == proc.Gone })
}

func deathsOf(t *testing.T, c Config, worker string) []Death {
	t.Helper()
	deaths, damaged, err := readDeaths(filepath.Join(deathsDir(c.StateDir), worker+".jsonl"))
	if err != nil || damaged != 0 {
		t.Fatalf("deaths of %s: %d damaged, %v", worker, damaged, err)
	}
	return deaths
}

// leaderOf is the pid in the last line of the workers' own record of leads.
func leaderOf(t *testing.T, c Config) (pid int) {
	t.Helper()
	b, _ := os.ReadFile(c.Roles[0].Env["TEST_LEADS"])
	lines := strings.Fields(string(b))
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &pid); err != nil {
		t.Fatalf("leads %q: %v", b, err)
	}
	return pid
}

// TestUnseenDeathsAreRecorded: an end that nobody watched stands in the death
// history, once, and is still the last exit of its place after one more
// adoption.
func TestUnseenDeathsAreRecorded(t *testing.T) {
	c := newConfig(t, "good")
	first := apart(t, c)
	list := readyApart(t, c, 1)
	first.kill()
	leader := leaderOf(t, c)
	victim := list.Workers[slices.IndexFunc(list.Workers, func(w listedWorker) bool { return w.Identity.PID != leader })]
	earlier := deathLog{filepath.Join(deathsDir(c.StateDir), victim.Name+".jsonl"), -1}
	if err := earlier.add(Death{At: time.Now().Add(-time.Hour), PID: 9, Signal: "SIGKILL", Cause: "ended by signal SIGKILL"}); err != nil {
		t.Fatal(err)
	}
	killAndSee(t, victim.Identity)
	second := apart(t, c)
	now := readyApart(t, c, 1)
	second.kill()
	deaths := deathsOf(t, c, victim.Name)
	if len(deaths) != 2 || deaths[1].PID != victim.Identity.PID || !deaths[1].Unseen || deaths[1].Cause != causeUnseen || deaths[1].Leader || deaths[1].Code != nil || deaths[1].Signal != "" {
		t.Fatalf("deaths: %+v", deaths)
	}
	w := start(t, c)
	r := w.until("the role is adopted", full)
	if !slices.Equal(pidsIn(r), pidsOf(now)) {
		t.Fatalf("adopted %v of %v", pidsIn(r), pidsOf(now))
	}
	if last := r.Workers[victim.Index].LastExit; last == nil || last.PID != victim.Identity.PID || last.Signal != "" || last.Code != nil {
		t.Errorf("the last exit is %+v, want that of pid %d", last, victim.Identity.PID)
	}
}

// TestUnseenDeathIsRecordedOnce: the list still names a process whose end the
// supervisor before had written down.
func TestUnseenDeathIsRecordedOnce(t *testing.T) {
	c := newConfig(t, "good")
	first := apart(t, c)
	list := readyApart(t, c, 1)
	first.kill()
	leader := leaderOf(t, c)
	victim := list.Workers[slices.IndexFunc(list.Workers, func(w listedWorker) bool { return w.Identity.PID == leader })]
	killAndSee(t, victim.Identity)
	seven := 7
	known := deathLog{filepath.Join(deathsDir(c.StateDir), victim.Name+".jsonl"), -1}
	if err := known.add(Death{At: time.Now(), PID: leader, Code: &seven, Cause: "exit status 7"}); err != nil {
		t.Fatal(err)
	}
	w := start(t, c)
	r := w.until("the role is full", full)
	if last := r.Workers[victim.Index].LastExit; last == nil || last.Code == nil || *last.Code != 7 {
		t.Errorf("the last exit is %+v", last)
	}
	if deaths := deathsOf(t, c, victim.Name); len(deaths) != 1 {
		t.Errorf("deaths: %+v", deaths)
	}
}

// TestDeathsOfAllAreRecorded: nobody is left to be adopted, because all have
// died, or because their segment is gone and they were ended.
func TestDeathsOfAllAreRecorded(t *testing.T) {
	for _, kind := range []string{"died", "ended"} {
		t.Run(kind, func(t *testing.T) {
			c := newConfig(t, "good")
			if kind == "ended" {
				c = newConfig(t, "lasting")
			}
			first := apart(t, c)
			var list workersFile
			leader := 0
			if kind == "died" {
				list = readyApart(t, c, 1)
				leader = leaderOf(t, c)
			} else {
				eventually.Holds(t, "they are listed and run", func() bool {
					list, _ = readWorkers(filepath.Join(roleDir(c.RuntimeDir, "kv"), "workers.json"))
					b, _ := os.ReadFile(c.Roles[0].Env["TEST_LEADS"])
					return len(list.Workers) == 3 && strings.Count(string(b), "up ") == 3
				})
			}
			first.kill()
			if kind == "died" {
				// The standbys first: nobody follows.
				for _, w := range list.Workers {
					if w.Identity.PID != leader {
						killAndSee(t, w.Identity)
					}
				}
				killAndSee(t, proc.Identity{PID: leader, Start: list.Workers[slices.Index(pidsOf(list), leader)].Identity.Start,
					Boot: list.Workers[0].Identity.Boot, PIDNS: list.Workers[0].Identity.PIDNS})
			} else if err := os.Remove(list.Segment); err != nil {
				t.Fatal(err)
			}
			w := start(t, c)
			w.until("it has begun anew", func(r RoleStatus) bool {
				return !slices.ContainsFunc(r.Workers, func(w WorkerStatus) bool { return w.PID == 0 })
			})
			for _, old := range list.Workers {
				deaths := deathsOf(t, c, old.Name)
				if len(deaths) != 1 || deaths[0].PID != old.Identity.PID || deaths[0].Unseen != (kind == "died") ||
					(deaths[0].Cause == causeEnded) != (kind == "ended") || deaths[0].Leader != (old.Identity.PID == leader) {
					t.Errorf("deaths of %s, pid %d (the leader was %d): %+v", old.Name, old.Identity.PID, leader, deaths)
				}
			}
		})
	}
}
