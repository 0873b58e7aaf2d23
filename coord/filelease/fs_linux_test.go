//go:build linux

package filelease

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	defer func() { statfs = unix.Statfs }()
	for magic, kind := range map[int64]string{0x6969: "nfs", 0xff534d42: "cifs", -0x1acb2be: "smb2", 0x01021997: "9p", 0x65735546: "fuse"} {
		statfs = func(dir string, st *unix.Statfs_t) error {
			err := unix.Statfs(dir, st)
			st.Type = magic
			return err
		}
		root := t.TempDir()
		_, err := Open(root)
		if !errors.Is(err, ErrNetworkFS) || !strings.Contains(err.Error(), "("+kind+")") || !strings.Contains(err.Error(), "local folder") {
			t.Errorf("%s: %v", kind, err)
		}
		s, err := Open(root, AllowNetworkFS())
		if err != nil || !s.network {
			t.Errorf("%s, allowed: %v", kind, err)
			continue
		}
		l := claim(t, s, "kv")
		_, err = open(t, root, AllowNetworkFS()).Claim(within(t), "kv", Claimant{})
		heldBy(t, err, os.Getpid())
		if err := s.Release(within(t), l); err != nil {
			t.Error(err)
		}
	}
}

// TestRenewOnAFullDisk: the old record is whole, and Keep says so in time.
func TestRenewOnAFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) })
	s := open(t, root, WithTTL(3*time.Second))
	l := claim(t, s, "kv")
	fill(t, filepath.Join(root, "ballast"))
	before := contents(t, s.file("kv", leaseSuffix))
	if err := s.Renew(within(t), l); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("got %v", err)
	}
	l.Keep(t.Context())
	select {
	case <-l.Done():
	case <-within(t).Done():
		t.Fatal("Keep does not give up")
	}
	if err := l.Err(); !errors.Is(err, ErrLost) || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if age := l.sinceRenewal(); age < 2*time.Second || age >= 3*time.Second {
		t.Errorf("Done was closed %v after the last renewal, want 2s, one interval before the end", age)
	}
	if contents(t, s.file("kv", leaseSuffix)) != before {
		t.Error("the old record was changed")
	}
	if err := s.Release(within(t), l); err != nil {
		t.Error(err)
	}
}
