package filelease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// TestWaitIsWokenByARelease: long before the next look without news.
func TestWaitIsWokenByARelease(t *testing.T) {
	root := t.TempDir()
	a, b := open(t, root), open(t, root)
	l, err := a.Claim(within(t), "kv", Claimant{Pinned: true}) // no time to wait for
	if err != nil {
		t.Fatal(err)
	}
	got := waiting(t, b)
	time.Sleep(500 * time.Millisecond) // it has looked often enough, and sleeps
	begun := time.Now()
	if err := a.Release(within(t), l); err != nil {
		t.Fatal(err)
	}
	l2 := <-got
	if l2 == nil || l2.Epoch() != 2 {
		t.Fatalf("%+v", l2)
	}
	took := time.Since(begun)
	t.Logf("after %v", took)
	if took > lookWithNews/2 {
		t.Errorf("it took %v", took)
	}
}

func waiting(t *testing.T, s *Store) <-chan *Lease {
	got := make(chan *Lease, 1)
	ctx := within(t)
	go func() {
		l, err := s.Wait(ctx, "kv", Claimant{})
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	return got
}

func TestWaitIsWokenByADeath(t *testing.T) {
	root := t.TempDir()
	c := newClaimant(t, root)
	if word, _ := c.ask("pin kv"); word != "ok" {
		t.Fatal(word)
	}
	got := waiting(t, open(t, root))
	time.Sleep(500 * time.Millisecond)
	begun := time.Now()
	c.kill()
	if l := <-got; l == nil || l.Epoch() != 2 {
		t.Fatalf("%+v", l)
	}
	t.Logf("after %v", time.Since(begun))
	if took := time.Since(begun); took > lookWithNews/2 {
		t.Errorf("it took %v", took)
	}
}

func TestWaitGetsItsTurnByTime(t *testing.T) {
	root := t.TempDir()
	a, b := open(t, root, WithTTL(300*time.Millisecond)), open(t, root, WithTTL(300*time.Millisecond))
	begun := a.clock.Boottime()
	claim(t, a, "kv") // and is never renewed
	if l := <-waiting(t, b); l == nil || l.Epoch() != 2 {
		t.Fatalf("%+v", l)
	}
	if took := a.clock.Boottime() - begun; took < 300*time.Millisecond {
		t.Errorf("after %v", took)
	}
}

func TestWaitEndsWithItsContextAndSaysWhoHolds(t *testing.T) {
	root := t.TempDir()
	claim(t, open(t, root), "kv")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := open(t, root).Wait(ctx, "kv", Claimant{})
	var held *HeldError
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &held) || held.Holder.Label != "test" {
		t.Errorf("got %v", err)
	}
}

// TestManyWaitOneAtATime: each gets its turn.
func TestManyWaitOneAtATime(t *testing.T) {
	root := t.TempDir()
	const waiters = 16
	inside := make(chan struct{}, 1)
	seen := make(chan uint64, waiters)
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			s := open(t, root)
			l, err := s.Wait(within(t), "kv", Claimant{})
			if err != nil {
				t.Error(err)
				return
			}
			select {
			case inside <- struct{}{}:
			default:
				t.Error("two at a time")
			}
			seen <- l.Epoch()
			<-inside
			if err := s.Release(within(t), l); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(seen)
	last := uint64(0)
	for n := range seen {
		if n != last+1 {
			t.Errorf("epoch %d after %d", n, last)
		}
		last = n
	}
}

// TestDoneComesOneIntervalBeforeAnybodyElse: renewals hang, for somebody is in
// the critical section and does not leave it.
func TestDoneComesOneIntervalBeforeAnybodyElse(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, WithTTL(1500*time.Millisecond), WithRenewInterval(500*time.Millisecond))
	l := claim(t, s, "kv")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.Keep(ctx)
	l.Keep(ctx)
	time.Sleep(3 * time.Second) // it is kept
	if err := s.Verify(within(t), l); err != nil || l.Err() != nil {
		t.Fatalf("%v, %v", err, l.Err())
	}
	lock, err := acquire(within(t), s.file("kv", lockSuffix))
	if err != nil {
		t.Fatal(err)
	}
	<-l.Done()
	if age := l.sinceRenewal(); age < time.Second || age >= 1500*time.Millisecond {
		t.Errorf("Done was closed %v after the last renewal, want 1s", age)
	}
	if !errors.Is(l.Err(), ErrLost) {
		t.Errorf("got %v", l.Err())
	}
	unlock(lock)
	// Until its time is over, nobody else has it.
	l2, err := open(t, root, WithTTL(1500*time.Millisecond)).Wait(within(t), "kv", Claimant{})
	if err != nil || l2.Epoch() != 2 {
		t.Fatalf("%+v, %v", l2, err)
	}
	if age := l.sinceRenewal(); age < 1500*time.Millisecond {
		t.Errorf("granted to another %v after the last renewal", age)
	}
}

func TestKeepEndsWithItsContext(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, WithTTL(300*time.Millisecond))
	l := claim(t, s, "kv")
	ctx, cancel := context.WithCancel(context.Background())
	l.Keep(ctx)
	cancel()
	if l2 := <-waiting(t, open(t, root, WithTTL(300*time.Millisecond))); l2 == nil || l2.Epoch() != 2 {
		t.Errorf("%+v", l2)
	}
}

func TestBoottimeJumpsLikeASuspend(t *testing.T) {
	clock := newClock()
	s := open(t, t.TempDir(), WithClock(clock), WithTTL(300*time.Millisecond))
	l := claim(t, s, "kv")
	l.Keep(t.Context())
	clock.wall.Add(3600)
	clock.wall.Add(-7200)
	if err := s.Verify(within(t), l); err != nil {
		t.Error(err)
	}
	clock.boot.Add(int64(time.Hour))
	select {
	case <-l.Done():
	case <-within(t).Done():
		t.Fatal("Keep does not see it")
	}
	if !errors.Is(l.Err(), ErrLost) {
		t.Error(l.Err())
	}
}
