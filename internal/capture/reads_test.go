//go:build unix

package capture

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestReads: a FIFO is known again by another description, and another one is not.
func TestReads(t *testing.T) {
	dir := t.TempDir()
	var fds []int
	for _, name := range []string{"a.fifo", "b.fifo"} {
		path := filepath.Join(dir, name)
		if err := MakeFIFO(path, -1, -1); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fds = append(fds, int(f.Fd()))
	}
	c, err := Start(filepath.Join(dir, "a.fifo"), filepath.Join(dir, "log"), Options{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !c.Reads(fds[0]) || c.Reads(fds[1]) || c.Reads(-1) {
		t.Errorf("it reads a: %v, b: %v, nothing: %v", c.Reads(fds[0]), c.Reads(fds[1]), c.Reads(-1))
	}
}
