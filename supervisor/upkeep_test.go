package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/filelease"
	"github.com/standbyd/standbyd/test/eventually"
)

// untilWarned waits until status has a warning with that text.
func (w *world) untilWarned(text string) {
	w.t.Helper()
	w.untilNotes("a warning with "+text, func(all []string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, text) })
	})
}

func (w *world) untilNotes(what string, ok func([]string) bool) {
	w.t.Helper()
	eventually.Shows(w.t, what, func() (bool, string) {
		all := w.sup.Snapshot().Supervisor.Warnings
		return ok(all), fmt.Sprintf("%q", all)
	})
}

// removeAll removes a folder that others may write to meanwhile.
func removeAll(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; {
		err := os.RemoveAll(dir)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// refused: a second supervisor may not run with that config.
func refused(t *testing.T, c Config) {
	t.Helper()
	second, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(context.Background()); !errors.Is(err, ErrAlreadyRunning) {
		t.Errorf("a second supervisor: %v", err)
	}
}

// TestRemovedStateFolder: it is made again with all that must be in it, so that
// history and deaths go on, nobody else can have it, and tokens never fall.
func TestRemovedStateFolder(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	before := w.until("the role is full", full)
	removeAll(t, c.StateDir)
	w.untilWarned("the state folder " + c.StateDir + " was removed while standbyd ran")
	if !slices.ContainsFunc(w.sup.RecentEvents(), func(e Event) bool {
		return e.Type == EventWarning && strings.Contains(e.Text, "was removed while standbyd ran")
	}) {
		t.Error("there is no event of it")
	}
	elsewhere := c
	elsewhere.RuntimeDir += "2"
	refused(t, elsewhere)

	syscall.Kill(before.LeaderPID, syscall.SIGKILL)
	after := w.until("another leads and the killed one is back", func(r RoleStatus) bool {
		return full(r) && r.Term > before.Term && r.LastFailover != nil && r.pidOf(before.Leader) != before.LeaderPID
	})
	if after.LeaderPID == before.LeaderPID || after.Token.Generation() != before.Token.Generation() {
		t.Errorf("%s led, pid %d; %s leads, pid %d", before.Token, before.LeaderPID, after.Token, after.LeaderPID)
	}
	if records, _, err := ReadHistory(c.StateDir, "kv"); err != nil || len(records) != 1 || records[0].Token != after.Token {
		t.Errorf("history on disk: %+v, %v", records, err)
	}
	if deaths, _, err := readDeaths(filepath.Join(deathsDir(c.StateDir), before.Leader+".jsonl")); err != nil || len(deaths) != 1 {
		t.Errorf("deaths on disk: %+v, %v", deaths, err)
	}
	w.shutdown()
	again := start(t, c).until("the role is full", full)
	if again.Token <= after.Token {
		t.Errorf("the token fell from %s to %s", after.Token, again.Token)
	}
}

// TestTokensSurviveTheStateFolder: whatever is done to it just before the
// shutdown, the next supervisor's tokens are higher.
func TestTokensSurviveTheStateFolder(t *testing.T) {
	for kind, harm := range map[string]func(t *testing.T, state string){
		"removed": removeAll,
		"emptied": func(t *testing.T, state string) {
			for _, name := range []string{"leases", "logs", "deaths", "history.jsonl"} {
				removeAll(t, filepath.Join(state, name))
			}
		},
		"damaged": func(t *testing.T, state string) {
			// In place: the folder does not change.
			for _, name := range []string{"role.kv.epoch", "standbyd.epoch", "standbyd.lease.json"} {
				if err := os.WriteFile(filepath.Join(leasesDir(state), name), []byte("junk"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
		"without the counter": func(t *testing.T, state string) {
			if err := os.Remove(filepath.Join(leasesDir(state), "role.kv.epoch")); err != nil {
				t.Fatal(err)
			}
		},
		"an older copy": func(t *testing.T, state string) {
			removeAll(t, state)
			if err := os.MkdirAll(leasesDir(state), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(leasesDir(state), "role.kv.epoch"), []byte("1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			c := newConfig(t, "good")
			for range 2 { // generations 1 and 2, so that an older copy is one
				w := start(t, c)
				w.until("the role is full", full)
				w.shutdown()
			}
			w := start(t, c)
			before := w.until("the role is full", full)
			harm(t, c.StateDir)
			w.shutdown()
			if after := start(t, c).until("the role is full", full); after.Token <= before.Token {
				t.Errorf("the token fell from %s to %s", before.Token, after.Token)
			}
		})
	}
}

// TestStateFolderRemovedWhileNobodySupervises: the running workers tell the
// generation to whoever adopts them.
func TestStateFolderRemovedWhileNobodySupervises(t *testing.T) {
	c := newConfig(t, "good")
	leftInGeneration2(t, c)
	removeAll(t, c.StateDir)
	w := start(t, c)
	adopted := w.until("the role is full", full)
	if adopted.Token.Generation() != 2 {
		t.Fatalf("adopted with token %s", adopted.Token)
	}
	w.shutdown()
	if after := start(t, c).until("the role is full", full); after.Token <= adopted.Token {
		t.Errorf("the token fell from %s to %s", adopted.Token, after.Token)
	}
}

// awaitLeads waits until the workers have noted that many leads.
func awaitLeads(t *testing.T, c Config, n int) {
	t.Helper()
	eventually.Shows(t, fmt.Sprintf("%d leads", n), func() (bool, string) {
		b, _ := os.ReadFile(c.Roles[0].Env["TEST_LEADS"])
		return strings.Count("\n"+string(b), "\nlead ") >= n, string(b)
	})
}

// TestRivalInTheStateFolder: who takes the state folder as ours after it was
// removed is named for as long as it is there; then the folder is ours again.
func TestRivalInTheStateFolder(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	w.until("the role is full", full)
	var rival *filelease.Store
	var lease *filelease.Lease
	for deadline := time.Now().Add(limit); lease == nil; { // we may be faster
		removeAll(t, c.StateDir)
		var err error
		if rival, err = filelease.Open(c.StateDir); err == nil {
			lease, err = rival.Claim(context.Background(), instanceKey, filelease.Claimant{Label: "rival", Pinned: true})
		}
		if err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	w.untilWarned("another supervisor, pid ")
	if err := rival.Release(context.Background(), lease); err != nil {
		t.Fatal(err)
	}
	w.untilNotes("no rival", func(all []string) bool {
		return !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "another supervisor") })
	})
	refused(t, c)
}

// TestRemovedRuntimeFolder: the folder that stands there afterwards is locked
// as the first one was.
func TestRemovedRuntimeFolder(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	before := w.until("the role is full", full)
	removeAll(t, c.RuntimeDir)
	after := w.until("the role has a new segment", func(r RoleStatus) bool { return full(r) && r.Segment != before.Segment })
	if after.Token <= before.Token {
		t.Errorf("the token fell from %s to %s", before.Token, after.Token)
	}
	w.untilWarned("the runtime folder " + c.RuntimeDir + " was removed while standbyd ran")
	elsewhere := c
	elsewhere.StateDir += "2"
	refused(t, elsewhere)
	w.shutdown()
	w.noProcesses()
}

// TestLockThatAChildHoldsUntilItsExec is waited for: its supervisor is dead.
func TestLockThatAChildHoldsUntilItsExec(t *testing.T) {
	dir := t.TempDir()
	child, err := tryLockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryLockFolder(dir); !errors.Is(err, ErrAlreadyRunning) {
		t.Fatalf("locked twice: %v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { child.Close() })
	lock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}
