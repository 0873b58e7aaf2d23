package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/coord/filelease"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// TestDamagedCounterBesideAdoptedWorkers: the running workers tell the
// generation, so a counter that says nothing is written anew, and what stood
// there is kept.
func TestDamagedCounterBesideAdoptedWorkers(t *testing.T) {
	for kind, harm := range map[string]func(path string) error{
		"junk": func(path string) error { return os.WriteFile(path, []byte("junk"), 0o600) },
		"a folder": func(path string) error {
			os.Remove(path)
			return os.MkdirAll(filepath.Join(path, "junk"), 0o700)
		},
		"a FIFO": func(path string) error {
			os.Remove(path)
			return syscall.Mkfifo(path, 0o600)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			c := newConfig(t, "good")
			leftInGeneration2(t, c)
			counter := filepath.Join(leasesDir(c.StateDir), "role.kv.epoch")
			if err := harm(counter); err != nil {
				t.Fatal(err)
			}
			w := start(t, c)
			adopted := w.until("the role is adopted", full)
			w.untilWarned("the generation of role kv (damaged: that file is leases/role.kv.epoch.bad now)")
			if b, err := os.ReadFile(counter); err != nil || string(b) != "2\n" {
				t.Errorf("adopted with token %s, and the counter has %q, %v", adopted.Token, b, err)
			}
			if _, err := os.Lstat(counter + ".bad"); err != nil {
				t.Error(err)
			}
			// And whoever writes a number into it by hand is corrected.
			if err := os.WriteFile(counter, []byte("1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.shutdown()
			if after := start(t, c).until("the role is full", full); after.Token <= adopted.Token {
				t.Errorf("the token fell from %s to %s", adopted.Token, after.Token)
			}
		})
	}
}

// TestDamagedCounterAfterAllWorkersDied: their segment is there still, and
// tells the generation as well as they did.
func TestDamagedCounterAfterAllWorkersDied(t *testing.T) {
	c := newConfig(t, "good")
	first := apart(t, c)
	list := readyApart(t, c, 1)
	first.kill()
	for _, w := range list.Workers {
		syscall.Kill(w.Identity.PID, syscall.SIGKILL)
		eventually.Holds(t, "it is gone", func() bool { return proc.Judge(w.Identity) == proc.Gone })
	}
	if err := os.WriteFile(filepath.Join(leasesDir(c.StateDir), "role.kv.epoch"), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, c)
	if r := w.until("the role is full", full); r.Token.Generation() != 2 {
		t.Errorf("token %s", r.Token)
	}
	w.untilWarned("role.kv.epoch.bad")
}

// TestGenerationFarAboveTheCounter: the segment is where the role's user can
// write. What it says is believed as far as the state folder bears it out; else
// that is said, for as long as it is so.
func TestGenerationFarAboveTheCounter(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	w.until("the role is full", full)
	keep, counter := w.sup.keep.Load(), filepath.Join(leasesDir(c.StateDir), "role.other.epoch")
	if err := os.WriteFile(counter, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	const far = 3 * catchUp
	if err := keep.found("other", far); err == nil || keep.last("other") != 0 {
		t.Fatalf("believed, %v; used: %d", err, keep.last("other"))
	}
	w.untilWarned(fmt.Sprintf("write %d and a newline into leases/role.other.epoch", far))
	if b, err := os.ReadFile(counter); err != nil || string(b) != "junk" {
		t.Errorf("the counter has %q, %v", b, err)
	}
	if err := os.WriteFile(counter, fmt.Appendf(nil, "%d\n", far), 0o600); err != nil {
		t.Fatal(err)
	}
	w.untilNotes("no doubt", func(all []string) bool { return !strings.Contains(strings.Join(all, "\n"), "role.other.epoch") })

	// The history bears it out.
	if err := w.sup.history.append(Record{Role: "third", At: w.sup.started, Token: role.MakeToken(far+5, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := keep.found("third", far); err != nil || keep.last("third") != far+5 {
		t.Errorf("not believed: %v; used: %d", err, keep.last("third"))
	}
	if g, err := w.sup.nextGeneration("third", far); err != nil || g != far+6 {
		t.Errorf("the next generation is %d, %v", g, err)
	}
}

// TestUnreadableCounterNamesTheHistory: what a person has to write is not
// left to guess.
func TestUnreadableCounterNamesTheHistory(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	w.until("the role is full", full)
	w.until("the leadership is recorded", func(RoleStatus) bool { return w.sup.toldGeneration("kv") == 1 })
	w.shutdown()
	store, err := filelease.Open(c.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	if last, err := store.LastEpoch("role.kv"); err != nil || last != 1 {
		t.Fatalf("the counter has %d, %v", last, err)
	}
	if err := os.WriteFile(filepath.Join(leasesDir(c.StateDir), "role.kv.epoch"), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "the history knows of generations up to 1") {
		t.Errorf("started: %v", err)
	}
}
