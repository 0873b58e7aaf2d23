package api

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/internal/sockpath"
)

func TestListenIsPrivateAndCleansUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), SocketName)
	l, err := Listen(path, Access{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
		t.Errorf("socket: %v, %v", info, err)
	}
	l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

func TestStaleSocketIsReplacedAndALiveOneNever(t *testing.T) {
	path := filepath.Join(t.TempDir(), SocketName)
	crashed, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, Access{}); !errors.Is(err, ErrLive) {
		t.Errorf("Listen on a live socket: %v", err)
	}
	crashed.SetUnlinkOnClose(false) // as after a kill -9
	crashed.Close()
	l, err := Listen(path, Access{})
	if err != nil {
		t.Fatalf("Listen on a stale socket: %v", err)
	}
	if _, err := Listen(path, Access{}); !errors.Is(err, ErrLive) {
		t.Errorf("Listen on our own socket: %v", err)
	}

	// One that somebody put in our place is not ours to remove.
	os.Remove(path)
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("Close removed the socket of another: %v", err)
	}
}

func TestListenLeavesOtherFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), SocketName)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path, Access{}); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("Listen on a file: %v", err)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "precious" {
		t.Errorf("the file now has %q", raw)
	}
}

func TestPathTooLong(t *testing.T) {
	path := "/tmp/" + strings.Repeat("x", sockpath.Max)
	for _, err := range []error{
		func() error { _, err := Listen(path, Access{}); return err }(),
		func() error { _, err := NewClient(path).Status(t.Context()); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), "at most") || !strings.Contains(err.Error(), "runtime_dir") {
			t.Errorf("a path of %d bytes: %v", len(path), err)
		}
	}
}

func TestNoDaemon(t *testing.T) {
	path := filepath.Join(t.TempDir(), SocketName)
	if _, err := NewClient(path).Status(t.Context()); !errors.Is(err, ErrNoDaemon) || !strings.Contains(err.Error(), path) {
		t.Errorf("without a socket: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := NewClient(path).Status(t.Context()); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("with a stale socket: %v", err)
	}
}

// TestNotAllowed: who may not use the socket reads whose it is and what to do.
func TestNotAllowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), SocketName)
	l, err := Listen(path, Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	text := explainDial(path, &net.OpError{Op: "dial", Err: syscall.EACCES}).Error()
	for _, want := range []string{path, "belongs to " + person(os.Getuid()), "runtime_dir"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in: %s", want, text)
		}
	}
}
