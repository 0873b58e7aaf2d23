package filelease

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// A claim and its release, beside what is in it at least: a flock pair, two
// files that are written, synced and renamed, one that is removed, and their
// folder synced after each.
func BenchmarkClaimRelease(b *testing.B) {
	s := open(b, b.TempDir())
	ctx := context.Background()
	for b.Loop() {
		l, err := s.Claim(ctx, "kv", Claimant{Label: "bench"})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Release(ctx, l); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareFlockAndSyncedWrites(b *testing.B) {
	dir := b.TempDir()
	lock, err := openLock(dir + "/lock")
	if err != nil {
		b.Fatal(err)
	}
	defer lock.Close()
	record := make([]byte, 700)
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	write := func(path string, content []byte) {
		f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		must(err)
		_, err = f.Write(content)
		must(err)
		must(f.Sync())
		must(f.Close())
		must(os.Rename(path+".new", path))
		must(syncDir(dir))
	}
	for i := 0; b.Loop(); i++ {
		if ok, err := tryLock(lock); err != nil || !ok {
			b.Fatal(ok, err)
		}
		write(dir+"/epoch", fmt.Appendf(nil, "%d\n", i))
		write(dir+"/record", record)
		must(os.Remove(dir + "/record"))
		must(syncDir(dir))
		dropLock(lock)
	}
}

func BenchmarkBareFlock(b *testing.B) {
	lock, err := openLock(b.TempDir() + "/lock")
	if err != nil {
		b.Fatal(err)
	}
	defer lock.Close()
	for b.Loop() {
		if ok, err := tryLock(lock); err != nil || !ok {
			b.Fatal(ok, err)
		}
		dropLock(lock)
	}
}

func BenchmarkVerify(b *testing.B) {
	s := open(b, b.TempDir())
	l := claim(b, s, "kv")
	for b.Loop() {
		if err := s.Verify(context.Background(), l); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRenew(b *testing.B) {
	s := open(b, b.TempDir())
	l := claim(b, s, "kv")
	for b.Loop() {
		if err := s.Renew(context.Background(), l); err != nil {
			b.Fatal(err)
		}
	}
}
