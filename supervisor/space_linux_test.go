package supervisor

import (
	"errors"
	"os"
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
