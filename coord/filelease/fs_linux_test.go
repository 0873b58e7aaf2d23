//go:build linux

package filelease

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk: the old counter and the old lease stay whole.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) })
	s := open(t, root)
	ctx := within(t)
	l := claim(t, s, "kv")
	ballast := filepath.Join(root, "ballast")
	fill(t, ballast)
	before, err := os.ReadFile(s.file("kv", epochSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.NextEpoch(ctx, "kv"); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "old content") {
			t.Fatalf("on a full disk: %v", err)
		}
	}
	if after, err := os.ReadFile(s.file("kv", epochSuffix)); err != nil || string(after) != string(before) {
		t.Errorf("the counter reads %q, %v, want %q", after, err, before)
	}
	if err := s.Verify(ctx, l); err != nil {
		t.Error(err)
	}
	if err := s.Release(ctx, l); err != nil {
		t.Error(err)
	}
	fill(t, ballast) // the lease's own room too
	if _, err := s.Claim(ctx, "kv", Claimant{}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Claim on a full disk: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if l := claim(t, s, "kv"); l.Epoch() != 2 {
		t.Errorf("epoch is %d, want 2", l.Epoch())
	}
}

// fill makes the file system full.
func fill(t *testing.T, ballast string) {
	t.Helper()
	f, err := os.OpenFile(ballast, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

func TestNetworkFileSystemsAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	root := t.TempDir()
	// The kinds are known by number; this one is made known for the test.
	if err := unix.Mount("ramfs", root, "ramfs", 0, ""); err != nil {
		t.Skipf("cannot mount a ramfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) })
	const ramfsMagic = 0x858458f6
	networkKinds[ramfsMagic] = "ramfs"
	t.Cleanup(func() { delete(networkKinds, ramfsMagic) })
	_, err := Open(root)
	if !errors.Is(err, ErrNetworkFS) || !strings.Contains(err.Error(), "ramfs") || !strings.Contains(err.Error(), "local folder") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(root, AllowNetworkFS()); err != nil {
		t.Error(err)
	}
}
