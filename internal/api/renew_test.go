package api

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRemovedSocketComesBack: with its folder, and with nothing but its path.
func TestRemovedSocketComesBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, SocketName)
	l, err := Listen(path, Access{})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 100)
	s := NewServer(&puppet{}, func() {}, nil)
	s.Warn = func(line string) { told <- line }
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	hear := func(want string) {
		t.Helper()
		select {
		case line := <-told:
			if !strings.Contains(line, want) {
				t.Errorf("told %q, want %q", line, want)
			}
		case <-time.After(patience):
			t.Fatalf("nothing told, want %q", want)
		}
	}
	for _, remove := range []func(string) error{
		func(string) error { return os.RemoveAll(folder) },
		os.Remove,
	} {
		if err := remove(path); err != nil {
			t.Fatal(err)
		}
		hear("bound again")
		if _, err := NewClient(path).Status(t.Context()); err != nil {
			t.Errorf("after it was bound again: %v", err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("socket: %v, %v", info, err)
		}
		if info, err := os.Stat(folder); err != nil || info.Mode().Perm()&^0o711 != 0 {
			t.Errorf("folder: %v, %v", info, err)
		}
	}

	// A file in its place is left alone, and told once.
	os.Remove(path)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		hear("bound again") // it was faster
	} else {
		hear("is no socket")
	}
	os.Remove(path)
	hear("bound again")
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("after the end: %v", err)
	}
}
