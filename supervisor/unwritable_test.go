package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestUnwritableFolderIsNamed(t *testing.T) {
	s := &Supervisor{config: Config{RuntimeDir: "/run/x", StateDir: "/var/x"}}
	write := func(path string, err error) error { return &fs.PathError{Op: "write", Path: path, Err: err} }
	for _, c := range []struct {
		err   error
		field string // "": as it was
		says  string
	}{
		{fmt.Errorf("lease: %w", write("/var/x/leases/a.epoch.new", syscall.ENOSPC)), "state_dir", "written to /var/x; make space"},
		{&ConfigError{Field: "state_dir", Msg: "cannot be made", Err: write("/var/x/logs", syscall.EDQUOT)}, "state_dir", "written to /var/x; make space"},
		{write("/run/x/roles/kv/segment.1", syscall.ENOSPC), "runtime_dir", "written to /run/x; make space"},
		{atRuntime{fmt.Errorf("create segment /run/x/roles/kv/segment.1: allocate 4096 bytes: %w", syscall.ENOSPC)}, "runtime_dir", "written to /run/x; make space"},
		{atRuntime{write("/var/x/logs/kv-0.log", syscall.ENOSPC)}, "state_dir", "written to /var/x; make space"},
		{&os.LinkError{Op: "rename", Old: "/run/x/a", New: "/run/x/b", Err: syscall.ENOSPC}, "runtime_dir", "written to /run/x; make space"},
		{&ConfigError{Field: "state_dir", Msg: "cannot be made", Err: write("/var", syscall.EROFS)}, "state_dir", "/var/x is on a file system that is read-only; mount it writable, or set state_dir"},
		{write("/run/x/standbyd.lock", syscall.EROFS), "runtime_dir", "set runtime_dir to a folder that can be written to"},
		{write("/var/x/leases/a", syscall.EACCES), "state_dir", "may not write to /var/x; run standbyd as a user that may, or set state_dir"},
		{write("/srv/socket", syscall.ENOSPC), "", ""},
		{write("/srv/socket", syscall.EACCES), "", ""},
		{&ConfigError{Role: "kv", Field: "listen[0].address", Msg: "cannot be had", Err: syscall.EACCES}, "", ""},
		{write("/var/x/leases/a", syscall.EIO), "", ""},
		{nil, "", ""},
	} {
		got := s.unwritable(c.err)
		var setting *ConfigError
		if c.field == "" {
			if got != c.err {
				t.Errorf("%v became %v", c.err, got)
			}
			continue
		}
		if !errors.As(got, &setting) || setting.Field != c.field || !strings.Contains(got.Error(), c.says) || strings.Contains(got.Error(), "cannot be made") {
			t.Errorf("%v became %v", c.err, got)
		}
	}
}

func TestOneFolderForBoth(t *testing.T) {
	c := newConfig(t, "plain")
	link := filepath.Join(filepath.Dir(c.RuntimeDir), "link")
	if err := os.Symlink("run", link); err != nil {
		t.Fatal(err)
	}
	c.StateDir = link
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var setting *ConfigError
	if err := s.Run(t.Context()); !errors.As(err, &setting) || setting.Field != "state_dir" || !strings.Contains(err.Error(), "same folder as runtime_dir") {
		t.Errorf("a link to the other folder: %v", err)
	}
	c.StateDir = c.RuntimeDir + "/"
	if _, err := New(c); !errors.As(err, &setting) || setting.Field != "state_dir" {
		t.Errorf("one folder for both: %v", err)
	}
}

// A start that fails leaves nothing behind in the runtime folder.
func TestFailedStartLeavesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c := newConfig(t, "plain")
	c.Roles[0].Listen = []ListenConfig{{Name: "http", Address: taken.Addr().String()}}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Fatal("it has begun on an address that is taken")
	}
	left, err := os.ReadDir(c.RuntimeDir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestWriteThatFailsNamesTheFile, once, and not the one that would have
// replaced it.
func TestWriteThatFailsNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{folder: nil, filepath.Join(dir, "none", "file"): fs.ErrNotExist} {
		err := writeWhole(path, []byte("x"), 0o600)
		if err == nil || want != nil && !errors.Is(err, want) || strings.Count(err.Error(), dir) != 1 || pathOf(err) != path {
			t.Errorf("write %s: %v", path, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
