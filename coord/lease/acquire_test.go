package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// long is a tick that never passes in a test: what happens then happens by an
// event, not by the clock.
const long = time.Hour

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("nothing happened for a minute"))
	t.Cleanup(cancel)
	return ctx
}

// acquiring runs Acquire beside the test and returns when it waits.
func acquiring(t *testing.T, ctx context.Context, l *OwnerLease[record], opts ...AcquireOption) <-chan *Claim[record] {
	t.Helper()
	before := racing(l)
	got := make(chan *Claim[record], 1)
	go func() {
		c, err := l.Acquire(ctx, opts...)
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		got <- c
	}()
	for racing(l) == before {
		if len(got) > 0 {
			t.Fatal("it did not wait")
		}
		time.Sleep(time.Millisecond)
	}
	return got
}

func racing(l *OwnerLease[record]) int {
	n := 0
	for _, m := range heartbeat.NewTable(l.seg).Members() {
		if m.Racing {
			n++
		}
	}
	return n
}

func receive(t *testing.T, got <-chan *Claim[record]) *Claim[record] {
	t.Helper()
	select {
	case c, ok := <-got:
		if !ok {
			t.FailNow()
		}
		return c
	case <-time.After(time.Minute):
		t.Fatal("not acquired within a minute")
	}
	return nil
}

func TestClaimReadsAndWritesInItsTerm(t *testing.T) {
	l := newLease(t, WithGeneration(2))
	c := must(l.Acquire(soon(t)))(t)
	if c.Term() != 1 || c.Token() != 2<<42|1 || c.PID() != uint32(os.Getpid()) {
		t.Errorf("term %d, token %d, pid %d", c.Term(), c.Token(), c.PID())
	}
	if err := errors.Join(c.Check(), c.Beat(), c.Write(rec(2))); err != nil {
		t.Fatal(err)
	}
	if v := must(c.Read())(t); v != rec(2) {
		t.Errorf("read %v", v)
	}
	if v, term := c.View().Snapshot(); v != rec(2) || term != 1 {
		t.Errorf("snapshot %v of %d", v, term)
	}
	if err := c.Release(soon(t)); err != nil {
		t.Fatal(err)
	}
	wantErr(t, c.Check(), ErrFenced)
	wantErr(t, c.Beat(), ErrLost)
	wantErr(t, c.Write(rec(3)), ErrLost)
	_, err := c.Read()
	wantErr(t, err, ErrLost)
	if err := c.Release(soon(t)); err != nil {
		t.Errorf("second release: %v", err)
	}
	if pid, term := l.e.Active(); pid != 0 || term != 1 {
		t.Errorf("active word is (%d, %d)", pid, term)
	}
	if m := heartbeat.NewTable(l.seg).Members(); len(m) != 0 {
		t.Errorf("left in the member table: %v", m)
	}
	wantValue(t, l, 2, 1)
}

func TestAClaimOfAnEarlierTermStaysLostWhenItsProcessOwnsAgain(t *testing.T) {
	l := newLease(t)
	first := must(l.Acquire(soon(t)))(t)
	if err := first.Release(soon(t)); err != nil {
		t.Fatal(err)
	}
	second := must(l.Acquire(soon(t)))(t)
	defer second.Release(soon(t))
	wantErr(t, first.Write(rec(9)), ErrLost)
	wantErr(t, first.Check(), ErrFenced)
	if err := first.Release(soon(t)); err != nil {
		t.Error(err)
	}
	if err := second.Check(); err != nil {
		t.Error("the release of the first claim ended the second:", err)
	}
}

func TestASecondAcquireWaits(t *testing.T) {
	for _, which := range []string{"same handle", "another handle"} {
		t.Run(which, func(t *testing.T) {
			l := newLease(t, WithTick(long))
			second := l
			if which != "same handle" {
				second = reopen(t, l)
			}
			first := must(l.Acquire(soon(t)))(t)
			var released atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				c, err := second.Acquire(soon(t))
				if err != nil {
					t.Error(err)
					return
				}
				if !released.Load() {
					t.Error("the claim was shared")
				}
				if c.Term() != first.Term()+1 {
					t.Errorf("term %d follows %d", c.Term(), first.Term())
				}
				c.Release(soon(t))
			}()
			if which != "same handle" {
				for racing(l) == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			time.Sleep(10 * time.Millisecond) // gives a fault the time to show
			released.Store(true)
			if err := first.Release(soon(t)); err != nil {
				t.Fatal(err)
			}
			<-done
		})
	}
}

func TestAcquireIsWokenByARelease(t *testing.T) {
	l := newLease(t, WithTick(long))
	p := startPuppet(t, l.Path())
	p.want("ok 1", "acquire")
	p.want("ok", "claim-write", 7)
	got := acquiring(t, soon(t), l)
	p.want("ok", "claim-release")
	c := receive(t, got)
	if v := must(c.Read())(t); v != rec(7) || c.Term() != 2 {
		t.Errorf("read %v in term %d", v, c.Term())
	}
	p.want("err lost", "claim-write", 8)
	// And the other way round.
	p.tell("acquire")
	for racing(l) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := c.Release(soon(t)); err != nil {
		t.Fatal(err)
	}
	if a := p.answer(); a != "ok 3" {
		t.Error(a)
	}
	p.want("ok", "claim-check")
}

func TestAcquireTakesFromAProcessProvenDead(t *testing.T) {
	if me := must(proc.Self())(t); me.Start == 0 {
		t.Skip("no proof of death on this system")
	}
	l := newLease(t, WithTick(long))
	for round := range uint64(5) {
		p := startPuppet(t, l.Path())
		p.want(fmt.Sprint("ok ", 2*round+1), "acquire")
		p.want("ok", "claim-write", round+2)
		got := acquiring(t, soon(t), l)
		p.cmd.Process.Kill() // nobody reaps it: a zombie is dead enough
		c := receive(t, got)
		if v := must(c.Read())(t); v != rec(round+2) {
			t.Errorf("read %v", v)
		}
		if r, _ := l.e.Entry(c.Term()); r.Reason != "crash" {
			t.Errorf("taken because of %q", r.Reason)
		}
		if err := c.Release(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAcquireTakesFromAnOwnerThatIsDeadAlready(t *testing.T) {
	if me := must(proc.Self())(t); me.Start == 0 {
		t.Skip("no proof of death on this system")
	}
	l := newLease(t, WithTick(long))
	p := startPuppet(t, l.Path())
	p.want("ok 1", "acquire")
	p.kill()
	c := must(l.Acquire(soon(t)))(t)
	if c.Term() != 2 {
		t.Errorf("term is %d", c.Term())
	}
}

func TestAcquireTakesFromAnOwnerWithoutBeats(t *testing.T) {
	l := newLease(t, WithTick(2*time.Millisecond))
	must(l.TryAcquire(low, 3))(t) // and never beats: nothing else is known of it
	c := must(reopen(t, l).Acquire(soon(t)))(t)
	if c.Term() != 2 || l.IsOwner(low) {
		t.Errorf("term is %d", c.Term())
	}
	wantErr(t, l.Beat(low), ErrLost)
}

// In a container every process has the same pid: an owner under our own pid
// that is another process's, or another handle's, is judged by its beats.
func TestAcquireTakesFromAStaleOwnerWithOurPid(t *testing.T) {
	l := newLease(t, WithTick(2*time.Millisecond))
	must(l.TryAcquire(uint32(os.Getpid()), 3))(t)
	c := must(reopen(t, l).Acquire(soon(t)))(t)
	if c.Term() != 2 {
		t.Errorf("term is %d", c.Term())
	}
}

func TestAClaimBeatsByItself(t *testing.T) {
	l := newLease(t, WithTick(10*time.Millisecond))
	c := must(l.Acquire(soon(t)))(t)
	other := reopen(t, l)
	// Only the epochs count: let many pass, one by one, each seen by a beat.
	for start := l.Epoch(); l.Epoch() < start+12; time.Sleep(time.Millisecond) {
	}
	_, err := other.TryAcquire(1<<22-1, 10)
	wantErr(t, err, ErrHeld)
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

func TestAManualClaimIsLostWithoutBeats(t *testing.T) {
	l := newLease(t, WithTick(2*time.Millisecond))
	c := must(l.Acquire(soon(t), WithManualBeat()))(t)
	for start := l.Epoch(); l.Epoch() < start+20; time.Sleep(time.Millisecond) {
		if err := c.Beat(); err != nil {
			t.Skip("the machine stopped this test for longer than the grace")
		}
	}
	if err := c.Check(); err != nil {
		t.Fatal("it was lost in spite of its beats:", err)
	}
	other := reopen(t, l)
	next := must(other.Acquire(soon(t)))(t)
	defer next.Release(soon(t))
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("its loss was not noticed within a minute")
	}
	wantErr(t, c.Check(), ErrFenced)
	wantErr(t, c.Write(rec(9)), ErrLost)
	wantErr(t, c.Release(soon(t)), ErrLost)
	if err := next.Check(); err != nil {
		t.Error("a late release hit the successor:", err)
	}
}

func TestALossByTheClassicVerbsIsNoticedAtOnce(t *testing.T) {
	l := newLease(t, WithTick(long))
	c := must(l.Acquire(soon(t)))(t)
	must(reopen(t, l).TryAcquire(1, 3))(t)
	wantErr(t, c.Check(), ErrFenced)
	wantErr(t, c.Write(rec(2)), ErrLost)
	heartbeat.NewTable(l.seg).WakeAll() // a classic claim wakes nobody; the next event or tick does
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("not within a minute")
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	l := newLease(t, WithTick(long))
	other := reopen(t, l)
	first := must(l.Acquire(soon(t)))(t)
	why := errors.New("tired of waiting")
	for _, h := range []*OwnerLease[record]{l, other} {
		ctx, cancel := context.WithCancelCause(context.Background())
		failed := make(chan error)
		go func() {
			_, err := h.Acquire(ctx)
			failed <- err
		}()
		time.Sleep(5 * time.Millisecond)
		cancel(why)
		if err := <-failed; !errors.Is(err, why) {
			t.Errorf("error is %v", err)
		}
		_, err := h.Acquire(ctx)
		wantErr(t, err, why)
	}
	if m := heartbeat.NewTable(l.seg).Members(); len(m) != 1 {
		t.Errorf("%d seats are taken, want that of the claim alone", len(m))
	}
	if err := first.Check(); err != nil {
		t.Error(err)
	}
	if err := first.Release(soon(t)); err != nil {
		t.Fatal(err)
	}
	c := must(other.Acquire(soon(t)))(t)
	if c.Term() != 2 {
		t.Errorf("those who gave up changed the term to %d", c.Term())
	}
}

func TestWaitersGoInTheOrderOfPriorityThenOfArrival(t *testing.T) {
	l := newLease(t, WithTick(long))
	first := must(l.Acquire(soon(t)))(t)
	var queue []<-chan *Claim[record]
	for _, priority := range []int32{0, 0, 5, 0} {
		queue = append(queue, acquiring(t, soon(t), reopen(t, l), WithPriority(priority)))
	}
	var order []int
	for c := first; len(order) < len(queue); {
		if err := c.Release(soon(t)); err != nil {
			t.Fatal(err)
		}
		select {
		case c = <-queue[0]:
			order = append(order, 0)
		case c = <-queue[1]:
			order = append(order, 1)
		case c = <-queue[2]:
			order = append(order, 2)
		case c = <-queue[3]:
			order = append(order, 3)
		}
	}
	if !slices.Equal(order, []int{2, 0, 1, 3}) {
		// Nobody waits for one that the machine does not run.
		t.Skipf("one stepped in: %v", order)
	}
}

func TestCloseReleasesTheClaim(t *testing.T) {
	l := newLease(t)
	other := reopen(t, l)
	must(l.Acquire(soon(t)))(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := other.CurrentOwner(); ok {
		t.Error("still owned")
	}
	c := must(other.Acquire(soon(t)))(t)
	if c.Term() != 2 {
		t.Errorf("term is %d", c.Term())
	}
}

func TestCloseEndsAnAcquireThatWaits(t *testing.T) {
	l := newLease(t, WithTick(long))
	other := reopen(t, l)
	must(l.Acquire(soon(t)))(t)
	failed := make(chan error, 2)
	for range cap(failed) { // one waits for the lease, one for the first
		go func() {
			_, err := other.Acquire(soon(t))
			failed <- err
		}()
	}
	for racing(l) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for range cap(failed) {
		wantErr(t, <-failed, ErrClosed)
	}
}

func TestAcquireOfARemovedFileFails(t *testing.T) {
	l := newLease(t, WithTick(2*time.Millisecond))
	other := reopen(t, l)
	c := must(l.Acquire(soon(t)))(t)
	failed := make(chan error)
	go func() {
		_, err := other.Acquire(soon(t))
		failed <- err
	}()
	for racing(l) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := os.Remove(l.Path()); err != nil {
		t.Skip("a mapped file cannot be removed here:", err)
	}
	wantErr(t, <-failed, shm.ErrGone)
	// Nobody else can find the segment any more: the claim says so.
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Error("the claim did not notice within a minute")
	}
}

func TestAcquireRefusesAClosedRoleAndWaitsForItsGate(t *testing.T) {
	l := newLease(t, WithTick(long))
	l.e.SetControl(election.Control{Nominee: -1, Gate: true})
	got := acquiringGate(t, l)
	if pid, _ := l.e.Active(); pid != 0 {
		t.Fatal("active before the grant")
	}
	l.e.SetControl(election.Control{Nominee: -1, Gate: true, GrantedTerm: 1})
	c := receive(t, got)
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if err := c.Release(soon(t)); err != nil {
		t.Fatal(err)
	}
	l.e.SetControl(election.Control{Nominee: -1, State: election.ControlClosed})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := l.Acquire(ctx)
	wantErr(t, err, context.DeadlineExceeded)
}

// acquiringGate returns when the lease is claimed and waits for the gate.
func acquiringGate(t *testing.T, l *OwnerLease[record]) <-chan *Claim[record] {
	got := make(chan *Claim[record], 1)
	go func() {
		c, err := l.Acquire(soon(t))
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		got <- c
	}()
	for l.Term() == 0 {
		time.Sleep(time.Millisecond)
	}
	return got
}

func TestAClaimThatAnotherPackageWon(t *testing.T) {
	p := shm.DefaultParams()
	seg := must(shm.Create(t.TempDir()+"/role", p, nil))(t)
	defer seg.Close()
	e := election.Attach(seg)
	payload := PayloadOf(seg)
	defer payload.Close()
	term := must(e.Claim(election.Attempt{PID: 77, Seat: -1, Grace: 3}))(t).Term
	lost := make(chan struct{})
	c := must(ClaimOf[record](payload, Held{PID: 77, Term: term, Done: lost}))(t)
	wantErr(t, c.Check(), ErrFenced) // not promoted yet
	if err := e.Promote(soon(t), election.Promotion{PID: 77, Term: term}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Check(), c.Write(rec(3))); err != nil {
		t.Fatal(err)
	}
	if v, at := must(Attach[record](seg))(t).Snapshot(); v != rec(3) || at != term {
		t.Errorf("others see %v of %d", v, at)
	}
	_, err := ClaimOf[[49]byte](payload, Held{PID: 77, Term: term})
	wantErr(t, err, ErrPayload)
	if err := c.Release(soon(t)); err != nil {
		t.Fatal(err)
	}
	if pid, _ := e.Active(); pid != 0 {
		t.Error("still active after the release")
	}
	var told bool
	c = must(ClaimOf[record](payload, Held{PID: 77, Term: term, Release: func(context.Context) error { told = true; return nil }}))(t)
	if err := c.Release(soon(t)); err != nil || !told {
		t.Errorf("its own release was not called: %v, %v", told, err)
	}
}

func TestOneOwnerAtATimeAcrossHandlesAndGoroutines(t *testing.T) {
	l := newLease(t, WithTick(long))
	const handles, routines, rounds = 3, 3, 15
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range handles {
		h := reopen(t, l)
		for range routines {
			wg.Go(func() {
				for range rounds {
					c, err := h.Acquire(soon(t))
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 {
						t.Error("two owners at once")
					}
					v, err := c.Read()
					if err == nil {
						err = c.Write(rec(v.N + 1))
					}
					inside.Add(-1)
					if err = errors.Join(err, c.Release(soon(t))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if v, term := l.Snapshot(); v != rec(1+handles*routines*rounds) || term < handles*routines*rounds {
		t.Errorf("ended with %v in term %d", v, term)
	}
}
