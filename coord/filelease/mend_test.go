package filelease

import (
	"errors"
	"os"
	"testing"
)

// TestMendedCounter: who knows the last epoch repairs what others may not
// touch, and the damaged bytes are kept.
func TestMendedCounter(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := within(t)
	path := s.file("kv", epochSuffix)
	if err := os.WriteFile(path, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.MendEpoch(ctx, "kv", 7); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path + ".bad"); err != nil || string(got) != "junk" {
		t.Errorf(".bad has %q, %v", got, err)
	}
	if err := s.MendEpoch(ctx, "kv", 3); err != nil {
		t.Fatal(err)
	}
	if got, err := s.NextEpoch(ctx, "kv"); err != nil || got != 8 {
		t.Errorf("the next epoch is %d, %v", got, err)
	}
	if keys, err := s.Keys(); err != nil || len(keys) != 1 {
		t.Errorf("keys %q, %v", keys, err)
	}
}

// TestMendedCounterThatIsNoFile: a folder in its place is no counter that says
// 0, and is kept with what is in it, as is what was put aside before.
func TestMendedCounterThatIsNoFile(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := within(t)
	path := s.file("kv", epochSuffix)
	for round := range 3 {
		if err := os.MkdirAll(path+"/"+string(rune('a'+round)), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := s.NextEpoch(ctx, "kv"); !errors.Is(err, ErrUnreadable) {
			t.Fatalf("a folder: %v", err)
		}
		if err := s.MendEpoch(ctx, "kv", 7); err != nil {
			t.Fatal(err)
		}
		if got, err := s.LastEpoch("kv"); err != nil || got != 7 {
			t.Fatalf("the last epoch is %d, %v", got, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, kept := range []string{".bad.1/a", ".bad.2/b", ".bad/c"} {
		if _, err := os.Stat(path + kept); err != nil {
			t.Error(err)
		}
	}
}

// TestMendedLease: the holder goes on under the same epoch; nobody else may
// write a record anew.
func TestMendedLease(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := within(t)
	who := Claimant{Label: "holder", Pinned: true}
	l, err := s.Claim(ctx, "kv", who)
	if err != nil {
		t.Fatal(err)
	}
	if liveOf(l.claim) == nil {
		t.Skip("no lock on a file proves here that a lease is held")
	}
	path := s.file("kv", leaseSuffix)
	if err := os.WriteFile(path, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(ctx, l); !errors.Is(err, ErrUnreadable) {
		t.Fatalf("damaged: %v", err)
	}
	if err := s.Mend(ctx, l, who); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(ctx, l); err != nil {
		t.Errorf("mended: %v", err)
	}
	if got, err := os.ReadFile(s.file("kv", badSuffix)); err != nil || string(got) != "junk" {
		t.Errorf(".bad has %q, %v", got, err)
	}
	if err := s.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Mend(ctx, l, who); !errors.Is(err, ErrUnreadable) {
		t.Errorf("released: %v", err)
	}
}
