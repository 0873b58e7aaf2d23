//go:build linux

package capture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	r := newRig(t, Options{MaxBytes: 1 << 20})
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(small, unix.MNT_DETACH) })
	r.c.Close()
	r.log = filepath.Join(small, "kv-0.log")
	r.start(Options{MaxBytes: 1 << 20})
	line := strings.Repeat("x", 500) + "\n"
	const n = 400 // 200 KiB
	for range n {
		r.print(line)
	}
	r.c.Drain()
	kept := 0
	for _, l := range r.lines(r.log) { // every one is whole
		if l+"\n" == line {
			kept++
		}
	}
	if r.c.Dropped() == 0 || uint64(kept)+r.c.Dropped() != n {
		t.Errorf("%d lines kept, %d dropped, want %d together", kept, r.c.Dropped(), n)
	}
	if err := os.Truncate(r.log, 0); err != nil {
		t.Fatal(err)
	}
	r.print("after\n")
	r.c.Drain()
	if got := r.lines(r.log); len(got) != 2 || !strings.Contains(got[0], "lines dropped: ") || !strings.Contains(got[0], "no space left") || got[1] != "after" {
		t.Errorf("the log has %q", got)
	}
}
