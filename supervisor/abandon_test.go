package supervisor

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/internal/proc"
)

// tree lists what is below a folder.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		names = append(names, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestFailedStartRemovesOnlyItsOwn: what was in the runtime folder before is
// there afterwards, also where it is in the way, and nothing else is.
func TestFailedStartRemovesOnlyItsOwn(t *testing.T) {
	c := newConfig(t, "good")
	dir := roleDir(c.RuntimeDir, "kv")
	for _, path := range []string{
		filepath.Join(dir, socketName, "mine"), filepath.Join(dir, "segment.3", "mine"), filepath.Join(dir, "notes"),
		filepath.Join(rolesDir(c.RuntimeDir), "foreign", "mine"),
	} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(c.RuntimeDir, 0o700); err != nil {
		t.Fatal(err)
	}
	before := tree(t, rolesDir(c.RuntimeDir))
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Fatalf("started beside a folder at the path of its socket: %v", err)
	}
	if after := tree(t, rolesDir(c.RuntimeDir)); !slices.Equal(after, before) {
		t.Errorf("there is %q now; there was %q", after, before)
	}
	// The advice works.
	if err := os.Rename(filepath.Join(dir, socketName), filepath.Join(c.RuntimeDir, "away")); err != nil {
		t.Fatal(err)
	}
	w := start(t, c)
	if r := w.until("the role is full", full); r.Token.Generation() != 1 {
		t.Errorf("token %s, after a folder that has the name of a segment", r.Token)
	}
}

// TestFailedStartLeavesWhatACrashLeft: it removes what it has made itself, and
// keeps what the start after it wants to know of.
func TestFailedStartLeavesWhatACrashLeft(t *testing.T) {
	c := newConfig(t, "good")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	second := testRole(t, c.Roles[0].Dir, "good")
	second.Name = "second"
	second.Listen = []ListenConfig{{Name: "http", Address: taken.Addr().String()}}
	broken := c
	broken.Roles = append(slices.Clone(c.Roles), second)
	fail := func() {
		t.Helper()
		s, err := New(broken)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(context.Background()); err == nil {
			t.Fatal("started with a port that is taken")
		}
	}
	fail()
	if _, err := os.Lstat(rolesDir(c.RuntimeDir)); !os.IsNotExist(err) {
		t.Errorf("left: %q, %v", tree(t, rolesDir(c.RuntimeDir)), err)
	}

	first := apart(t, c)
	list := readyApart(t, c, 1)
	first.kill()
	for _, w := range list.Workers {
		killAndSee(t, w.Identity)
	}
	fail()
	after, err := readWorkers(filepath.Join(roleDir(c.RuntimeDir, "kv"), "workers.json"))
	if err != nil || len(after.Workers) != len(list.Workers) {
		t.Errorf("the list of workers is %+v, %v", after, err)
	}
	w := start(t, c)
	w.until("the role is full", full)
	if left, _ := filepath.Glob(filepath.Join(roleDir(c.RuntimeDir, "kv"), "segment.*")); len(left) != 1 {
		t.Errorf("segments: %q", left)
	}
	for _, old := range list.Workers {
		if proc.Judge(old.Identity) != proc.Gone {
			t.Errorf("%v lives", old.Identity)
		}
	}
	w.shutdown()
	if _, err := os.Lstat(rolesDir(c.RuntimeDir)); !os.IsNotExist(err) {
		t.Errorf("left after the end: %v", err)
	}
}

// TestHistoryThatIsAFolder: the error says what to do.
func TestHistoryThatIsAFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := openHistory(path); err == nil || !strings.Contains(err.Error(), "move it away") || strings.Count(err.Error(), path) != 1 {
		t.Errorf("opened: %v", err)
	}
}
