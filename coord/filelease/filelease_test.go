package filelease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestClaimHeldReleaseAndEpochs(t *testing.T) {
	root := t.TempDir()
	a, b := open(t, root), open(t, root)
	ctx := within(t)
	l := claim(t, a, "standbyd")
	if l.Key() != "standbyd" || l.Epoch() != 1 {
		t.Errorf("got %q epoch %d", l.Key(), l.Epoch())
	}
	if again := claim(t, a, "standbyd"); again != l {
		t.Error("the same run and block did not get the same lease")
	}
	_, err := a.Claim(ctx, "standbyd", Claimant{Block: "other"})
	heldBy(t, err, os.Getpid())
	_, err = b.Claim(ctx, "standbyd", Claimant{})
	held := heldBy(t, err, os.Getpid())
	if h := held.Holder; h.Label != "test" || h.Version != "1.2" || h.SessionHint != "hint" || h.Epoch != 1 || time.Since(h.Since) > time.Hour {
		t.Errorf("holder is %+v", h)
	}
	if want := fmt.Sprintf(`lease "standbyd" is held by test, pid %d on `, os.Getpid()); !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error is %q, want %q...", err, want)
	}
	if err := a.Verify(ctx, l); err != nil {
		t.Errorf("Verify: %v", err)
	}
	if h, err := b.LiveHolderOtherThan(ctx, "standbyd", ""); err != nil || h == nil || h.PID != os.Getpid() {
		t.Errorf("LiveHolderOtherThan: %+v, %v", h, err)
	}
	if h, err := b.LiveHolderOtherThan(ctx, "standbyd", a.run); err != nil || h != nil {
		t.Errorf("LiveHolderOtherThan its own run: %+v, %v", h, err)
	}
	for range 2 { // the second is a no-op
		if err := a.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Verify(ctx, l); !errors.Is(err, ErrLost) {
		t.Errorf("Verify after Release: %v", err)
	}
	if h, err := b.LiveHolderOtherThan(ctx, "standbyd", ""); err != nil || h != nil {
		t.Errorf("LiveHolderOtherThan after Release: %+v, %v", h, err)
	}
	l2 := claim(t, b, "standbyd")
	if l2.Epoch() != 2 {
		t.Errorf("epoch is %d, want 2", l2.Epoch())
	}
	// A late Release of the first harms nobody.
	if err := a.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
	if err := b.Verify(ctx, l2); err != nil {
		t.Error(err)
	}
	heldBy(t, a.Verify(ctx, l), os.Getpid())
}

func TestNextEpochRisesAndSurvives(t *testing.T) {
	root := t.TempDir()
	ctx := within(t)
	for want := uint64(1); want <= 5; want++ {
		if got, err := open(t, root).NextEpoch(ctx, "kv"); err != nil || got != want {
			t.Fatalf("got %d, %v, want %d", got, err, want)
		}
	}
	s := open(t, root)
	// A lease of a higher epoch counts too, as after a counter that was
	// restored from an old copy.
	l := claim(t, s, "kv")
	if err := os.WriteFile(s.file("kv", epochSuffix), []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.NextEpoch(ctx, "kv"); err != nil || got != l.Epoch()+1 {
		t.Errorf("got %d, %v, want %d", got, err, l.Epoch()+1)
	}
	if keys, err := s.Keys(); err != nil || fmt.Sprint(keys) != "[kv]" {
		t.Errorf("keys are %v, %v", keys, err)
	}
}

// TestRaisedEpoch: who remembers what a lost counter had handed out brings it
// back, and never lowers one.
func TestRaisedEpoch(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := within(t)
	for i, step := range []struct{ raise, last uint64 }{{0, 0}, {7, 7}, {3, 7}, {7, 7}, {9, 9}} {
		if err := s.RaiseEpoch(ctx, "kv", step.raise); err != nil {
			t.Fatal(err)
		}
		if last, err := s.LastEpoch("kv"); err != nil || last != step.last {
			t.Errorf("step %d: the last epoch is %d, %v, want %d", i, last, err, step.last)
		}
	}
	if got, err := s.NextEpoch(ctx, "kv"); err != nil || got != 10 {
		t.Errorf("the next epoch is %d, %v", got, err)
	}
	// What cannot be read may have been higher.
	if err := os.WriteFile(s.file("kv", epochSuffix), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.RaiseEpoch(ctx, "kv", 20); !errors.Is(err, ErrUnreadable) {
		t.Errorf("a damaged counter: %v", err)
	}
	if _, err := s.LastEpoch("kv"); !errors.Is(err, ErrUnreadable) {
		t.Errorf("a damaged counter: %v", err)
	}
	if _, err := s.LastEpoch("a/b"); !errors.Is(err, ErrKey) {
		t.Errorf("a bad key: %v", err)
	}
}

func TestDamagedCounterIsAnError(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := within(t)
	path := s.file("kv", epochSuffix)
	for _, text := range []string{"", "7", "x\n", "-1\n", "007\n", "7\n8\n", " 7\n", "18446744073709551616\n", "\x00\x00\x00\x00"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.NextEpoch(ctx, "kv")
		if !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "write a decimal number") {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := s.Claim(ctx, "kv", Claimant{}); !errors.Is(err, ErrUnreadable) {
			t.Errorf("Claim with %q: %v", text, err)
		}
		if b, _ := os.ReadFile(path); string(b) != text {
			t.Errorf("the damaged counter was changed to %q", b)
		}
	}
	if err := os.WriteFile(path, []byte("18446744073709551615\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.NextEpoch(ctx, "kv"); !errors.Is(err, ErrExhausted) {
		t.Errorf("at the end: %v", err)
	}
	// A claim that failed left nothing behind that is held.
	if err := os.WriteFile(path, []byte("41\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l := claim(t, s, "kv"); l.Epoch() != 42 {
		t.Errorf("epoch is %d, want 42", l.Epoch())
	}
}

func TestKeys(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := within(t)
	for _, key := range []string{"", ".", "..", ".hidden", "a/b", `a\b`, "a b", "ä", "a\x00", strings.Repeat("x", maxKey+1)} {
		if _, err := s.NextEpoch(ctx, key); !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"a", "role.kv-1_x", "a..b", strings.Repeat("x", maxKey)} {
		if _, err := s.NextEpoch(ctx, key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestWaitForTheCriticalSectionEndsWithItsContext(t *testing.T) {
	s := open(t, t.TempDir())
	lock, err := tryAcquire(s.file("kv", lockSuffix))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.NextEpoch(ctx, "kv"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "kv.lock") {
		t.Errorf("got %v", err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := s.NextEpoch(within(t), "kv")
		got <- err
	}()
	unlock(lock)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestGoroutinesCountWithoutGaps(t *testing.T) {
	root := t.TempDir()
	const workers, each = 8, 20
	seen := make(chan uint64, workers*each)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			s := open(t, root)
			for range each {
				n, err := s.NextEpoch(context.Background(), "kv")
				if err != nil {
					t.Error(err)
				}
				seen <- n
			}
		})
	}
	wg.Wait()
	close(seen)
	all := make(map[uint64]bool)
	for n := range seen {
		if all[n] || n < 1 || n > workers*each {
			t.Errorf("%d was handed out twice, or is out of range", n)
		}
		all[n] = true
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file as root: %v", err)
	}
}
