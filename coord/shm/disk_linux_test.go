//go:build linux

package shm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// mounted is a fresh file system on a folder of the test's.
func mounted(t *testing.T, fstype, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("test", dir, fstype, 0, options); err != nil {
		t.Skipf("mount %s: %v", fstype, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// as runs f as another user, on a thread that ends with it.
func as(t *testing.T, uid uintptr, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	done := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread() // never unlocked
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid)
		if errno == 0 {
			f()
		}
		done <- errno
	}()
	if errno := <-done; errno != 0 {
		t.Skipf("setresuid: %v", errno)
	}
}

// TestCreateOnAFullFileSystem: the error comes from Create, and no fault later.
func TestCreateOnAFullFileSystem(t *testing.T) {
	for name, options := range map[string]string{"much too small": "size=16k", "one page too small": "", "no inodes": "nr_inodes=1"} {
		t.Run(name, func(t *testing.T) {
			p := DefaultParams()
			if options == "" {
				q := p
				if err := q.normalize(); err != nil {
					t.Fatal(err)
				}
				options = "size=" + strconv.Itoa(q.geometry().total()-4096)
			}
			dir := mounted(t, "tmpfs", options)
			s, err := Create(filepath.Join(dir, "seg"), p, nil)
			if !errors.Is(err, unix.ENOSPC) {
				t.Errorf("got %v, want ENOSPC", err)
			}
			if s != nil {
				s.Close()
			}
			wantEmpty(t, dir)
		})
	}
}

// TestAFullFileSystemHurtsNoSegmentThatIsThere: all blocks are there before the
// file has its name.
func TestAFullFileSystemHurtsNoSegmentThatIsThere(t *testing.T) {
	dir := mounted(t, "tmpfs", "size=1m")
	s, err := Create(filepath.Join(dir, "seg"), DefaultParams(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := os.Create(filepath.Join(dir, "rest"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := writeZeros(f, 2<<20); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling it: %v", err)
	}
	for off := 0; off < s.m.Len(); off += 4096 { // a page without a block would fault
		uint64At(s.m.mem, off+4088).Store(1)
	}
	if err := s.Flush(); err != nil {
		t.Error(err)
	}
}

// TestCreateWithoutFallocate: on a file system that has none, ramfs, the
// blocks are written.
func TestCreateWithoutFallocate(t *testing.T) {
	dir := mounted(t, "ramfs", "")
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, 4096)
	f.Close()
	if err != unix.EOPNOTSUPP {
		t.Skipf("this ramfs answers fallocate with %v", err)
	}
	path := filepath.Join(dir, "seg")
	a, err := Create(path, DefaultParams(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	last := len(a.Writers) - 1
	a.Writers[last].Cells[1][0].Store(5)
	if b.Writers[last].Cells[1][0].Load() != 5 {
		t.Error("a second mapping does not show the first one's stores")
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Blocks*512 < st.Size {
		t.Errorf("%d bytes in %d blocks: %v", st.Size, st.Blocks, err)
	}
}

func TestFilesOfOthersAreRefused(t *testing.T) {
	const nobody, other = 65534, 12345
	base := t.TempDir()
	// The folders above are the test runner's own.
	for dir := base; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Skip(err)
		}
	}
	for _, c := range []struct {
		name     string
		uid      int // of the file
		mode     fs.FileMode
		asUser   uintptr
		readonly bool
		want     error
	}{
		{"ours", nobody, 0o600, nobody, false, nil},
		{"ours, read by all", nobody, 0o644, nobody, false, nil},
		{"root's, to read", 0, 0o644, nobody, true, nil},
		{"root's, to write", 0, 0o644, nobody, false, fs.ErrPermission},
		{"another's, kept from us", other, 0o600, nobody, false, fs.ErrPermission},
		{"another's, to read", other, 0o644, nobody, true, ErrOwner},
		{"another's, open to all", other, 0o666, nobody, false, ErrOwner},
		{"another's, as root", other, 0o600, 0, false, nil},
		{"ours, written by the group", nobody, 0o620, nobody, false, ErrMode},
		{"ours, written by all", nobody, 0o602, nobody, false, ErrMode},
		{"root's, written by all", 0, 0o666, nobody, false, ErrMode},
		{"root's, written by all, as root", 0, 0o666, 0, false, ErrMode},
		{"ours, not to be written", nobody, 0o400, nobody, false, fs.ErrPermission},
		{"ours, without any right", nobody, 0, nobody, true, fs.ErrPermission},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(base, "seg")
			s, err := Create(path, DefaultParams(), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			defer os.Remove(path)
			if err := os.Chown(path, c.uid, -1); err != nil {
				t.Skip(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			as(t, c.asUser, func() {
				s, err = open(path, c.readonly)
				if err == nil {
					s.Close()
				}
			})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

// TestAnInheritedFileOfAnotherIsRefused: an open file is no reason to trust it.
func TestAnInheritedFileOfAnotherIsRefused(t *testing.T) {
	s := newSegment(t)
	if err := os.Chown(s.Path(), 12345, -1); err != nil {
		t.Skip(err)
	}
	f, err := os.OpenFile(s.Path(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	as(t, 65534, func() { _, err = OpenFile(f, s.Path()) })
	if !errors.Is(err, ErrOwner) {
		t.Errorf("got %v", err)
	}
}

func TestCreateWhereItMayNot(t *testing.T) {
	dir := t.TempDir()
	var err error
	as(t, 65534, func() { _, err = Create(filepath.Join(dir, "seg"), DefaultParams(), nil) })
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("in root's folder: %v", err)
	}
	wantEmpty(t, dir)

	// It may create the file, and may not give it away.
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Skip(err)
		}
	}
	p := DefaultParams()
	p.UID = 12345
	as(t, 65534, func() { _, err = Create(filepath.Join(dir, "seg"), p, nil) })
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("given away: %v", err)
	}
	wantEmpty(t, dir)
}
