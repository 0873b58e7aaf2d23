package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A runtime folder with some space, and not enough for a segment.
func TestTooLittleSpaceForASegment(t *testing.T) {
	c := newConfig(t, "good")
	if err := os.Mkdir(c.RuntimeDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", c.RuntimeDir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		t.Skipf("cannot mount a small file system (wants root): %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(c.RuntimeDir, syscall.MNT_DETACH) })
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var setting *ConfigError
	if err := s.Run(t.Context()); !errors.As(err, &setting) || setting.Field != "runtime_dir" || !strings.Contains(err.Error(), c.RuntimeDir+"; make space there") {
		t.Errorf("it says: %v", err)
	}
	if left, err := os.ReadDir(c.RuntimeDir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestFullRuntimeFolder: failovers go on; workers that die are started again
// when there is space, and until then say where it is missing.
func TestFullRuntimeFolder(t *testing.T) {
	c := newConfig(t, "good")
	if err := os.Mkdir(c.RuntimeDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", c.RuntimeDir, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("cannot mount a small file system (wants root): %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(c.RuntimeDir, syscall.MNT_DETACH) })
	w := start(t, c)
	before := w.until("the role is full", full)
	filler := filepath.Join(c.RuntimeDir, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the folder is not full: %v", err)
	}
	syscall.Kill(before.LeaderPID, syscall.SIGKILL)
	place := slices.IndexFunc(before.Workers, func(w WorkerStatus) bool { return w.Name == before.Leader })
	r := w.until("another leads, and the dead one is not started", func(r RoleStatus) bool {
		return led(r) && r.Term > before.Term && strings.Contains(r.Workers[place].Why, "no space left")
	})
	list := filepath.Join(roleDir(c.RuntimeDir, "kv"), "workers.json")
	if want := "write " + list + ": no space left on device; make space in " + c.RuntimeDir; !strings.Contains(r.Workers[place].Why, want) {
		t.Errorf("it says %q, want %q", r.Workers[place].Why, want)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	w.until("it is back", full)
	w.shutdown()
}
