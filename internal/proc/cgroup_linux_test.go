//go:build linux

package proc

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

// groupWith makes a cgroup with one process in it.
func groupWith(t *testing.T) (*Cgroup, Identity) {
	t.Helper()
	for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := OpenCgroup(top); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(top, "standbyd-test-")
		if err != nil {
			t.Skipf("no cgroups can be made here: %v", err)
		}
		t.Cleanup(func() { os.Remove(dir) })
		c, err := OpenCgroup(dir)
		if err != nil {
			t.Fatal(err)
		}
		p := exec.Command("/bin/sleep", "1000")
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Process.Kill(); p.Wait() })
		if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(p.Process.Pid)), 0); err != nil {
			t.Skipf("no process can be moved here: %v", err)
		}
		id, err := Of(p.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return c, id
	}
	t.Skip("no cgroup v2 here")
	return nil, Identity{}
}

// TestCgroupEndsOneByOne is the way of kernels without cgroup.kill, and of who
// may not use it.
func TestCgroupEndsOneByOne(t *testing.T) {
	c, id := groupWith(t)
	if p, err := c.Populated(); !p || err != nil {
		t.Fatalf("populated: %v, %v", p, err)
	}
	eventually.Holds(t, "it gets empty", func() bool {
		err := c.killEach()
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Populated()
		if err != nil {
			t.Fatal(err)
		}
		return !p
	})
	if v := Judge(id); v != Gone {
		t.Errorf("its process is %v", v)
	}
}

func TestRecordedCgroup(t *testing.T) {
	c, id := groupWith(t)
	dir := t.TempDir()
	if got, gone := RecordedCgroup(dir, id); got != nil || gone {
		t.Errorf("without a record: %v, %v", got, gone)
	}
	link := func(target string) {
		record := CgroupRecord(dir, id)
		os.MkdirAll(filepath.Dir(record), 0o755)
		os.Remove(record)
		if err := os.Symlink(target, record); err != nil {
			t.Fatal(err)
		}
	}
	link(c.Path())
	if got, gone := RecordedCgroup(dir, id); got == nil || got.Path() != c.Path() || gone {
		t.Errorf("recorded: %v, %v", got, gone)
	}
	other := id
	other.Start++
	if got, gone := RecordedCgroup(dir, other); got != nil || gone {
		t.Errorf("of another process with that pid: %v, %v", got, gone)
	}
	for _, target := range []string{"/tmp", "relative", "/no/such/folder"} {
		link(target)
		if got, gone := RecordedCgroup(dir, id); got != nil || gone {
			t.Errorf("%s: %v, %v", target, got, gone)
		}
	}
	link(c.Path() + "-removed")
	if got, gone := RecordedCgroup(dir, id); got != nil || !gone {
		t.Errorf("removed: %v, %v", got, gone)
	}
	if _, err := OpenCgroup("/no/such/folder"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
