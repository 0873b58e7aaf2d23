package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// AcquireOption changes one Acquire.
type AcquireOption func(*acquireOptions)

type acquireOptions struct {
	manual    bool
	candidate heartbeat.Candidate
}

// WithManualBeat leaves all beating to the claim's Beat, so that a program
// whose work hangs loses the lease though its process lives. Without it the
// claim beats by itself: then a beat speaks for the process, not for its work.
func WithManualBeat() AcquireOption { return func(o *acquireOptions) { o.manual = true } }

// WithPriority lets this Acquire go before those of lower priority that wait;
// among equals the one that waits longest is first. 0 is the default.
func WithPriority(p int32) AcquireOption { return func(o *acquireOptions) { o.candidate.Priority = p } }

// Acquire waits until this process owns the lease and returns its claim. It
// claims when the lease is vacant, when its owner is proven dead (same boot,
// same pid namespace, pid and start time), when the owner is more than the
// segment's grace epochs behind, and when the segment's preempt rule says so.
// It sleeps in between, without burning CPU, and ticks the epoch while it does.
// Before it returns it has fenced the predecessor as the segment asks, and is
// named in the active word.
//
// It never shares a claim: one that this process holds, through this handle or
// another, is waited for like any other. ctx bounds the waiting; the claim
// lasts until Release. The errors are ctx's cause, ErrClosed, ErrTermsExhausted, shm.ErrGone
// (the file was removed), heartbeat.ErrFull (no free seat), and those of
// [election.Election.Promote].
func (l *OwnerLease[T]) Acquire(ctx context.Context, opts ...AcquireOption) (*Claim[T], error) {
	var o acquireOptions
	for _, opt := range opts {
		opt(&o)
	}
	k, err := l.acquire(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", l.seg.Path(), err)
	}
	c := claimOf(l.view, Held{PID: k.pid, Term: k.term, Done: k.lost, Release: k.release})
	c.e = l.e // counts for this handle
	return c, nil
}

func (l *OwnerLease[T]) acquire(ctx context.Context, o acquireOptions) (*keeper, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-l.closing:
		return nil, ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	won := make(chan struct{})
	defer close(won)
	go func() {
		select {
		case <-l.closing:
			cancel(ErrClosed)
		case <-won:
		}
	}()
	k, err := contend(ctx, l.e, o)
	if err != nil {
		<-l.turn
		return nil, err
	}
	k.after = func() {
		l.keeper.CompareAndSwap(k, nil)
		<-l.turn
	}
	l.keeper.Store(k)
	return k, nil
}

// contender is one Acquire: a seat in the member table, from the first look to
// the release of what was won. A seat of its own makes those who wait queue in
// the order in which they came.
type contender struct {
	e     *election.Election
	seg   *shm.Segment
	table *heartbeat.Table
	seat  *heartbeat.Seat
	pid   uint32
}

// contend waits, claims and is promoted, again if it lost the lease on the way.
func contend(ctx context.Context, e *election.Election, o acquireOptions) (*keeper, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	self, err := proc.Self()
	if err != nil {
		return nil, err
	}
	c := contender{e: e, seg: e.Segment(), table: heartbeat.NewTable(e.Segment()), pid: uint32(self.PID)}
	if c.seat, err = c.table.Join(self, heartbeat.JoinOptions{Index: -1, Candidate: o.candidate}); err != nil {
		return nil, err
	}
	for {
		g, err := c.claim(ctx)
		if err != nil {
			c.seat.Leave()
			return nil, err
		}
		k := startKeeper(c, g.Term, o.manual)
		if err = k.promote(ctx, g.Reason); err == nil {
			return k, nil
		}
		k.stop()
		_ = giveBack(c.e, c.pid, g.Term)
		if !errors.Is(err, ErrLost) {
			c.seat.Leave()
			return nil, err
		}
	}
}

// claim waits until one attempt succeeds. Every wake judges everything again.
func (c *contender) claim(ctx context.Context) (election.Grant, error) {
	bell := &bell{seat: c.seat}
	defer bell.remove()
	defer context.AfterFunc(ctx, bell.ring)()
	var owner ownerWatch
	defer owner.drop()
	c.seat.SetReady(true)
	c.seat.SetRacing(true)
	defer c.seat.SetRacing(false)
	var queue queue
	p := c.seg.Params()
	for {
		count := c.seat.Event() // before the look, so that no change is missed
		if ctx.Err() != nil {
			return election.Grant{}, context.Cause(ctx)
		}
		if err := c.seg.Check(); err != nil {
			return election.Grant{}, err
		}
		c.e.Tick(shm.MonoNow())
		c.seat.Beat(c.e.Epoch())
		pid, term := c.e.Owner()
		owner.follow(c, pid, term, bell)
		timeout := untilTick(c.seg)
		if pid == 0 || p.Preempt != shm.PreemptSticky || c.e.Stale() || c.e.Dead(pid) {
			wait := queue.wait(c, pid, term)
			if wait <= 0 {
				g, err := c.e.Claim(election.Attempt{
					PID: c.pid, Seat: c.seat.Number(), Grace: p.Grace, Policy: p.Preempt, Dead: c.e.Dead, Stamp: true,
				})
				if !errors.Is(err, ErrHeld) {
					return g, err
				}
			} else {
				timeout = min(timeout, wait)
			}
		}
		if err := c.seat.WaitEvent(count, timeout); err != nil {
			return election.Grant{}, err
		}
	}
}

// bell wakes a contender that sleeps, from other goroutines, until it is
// removed: the segment may be closed after that.
type bell struct {
	mu   sync.Mutex
	seat *heartbeat.Seat
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seat != nil {
		b.seat.Interrupt()
	}
}

func (b *bell) remove() {
	b.mu.Lock()
	b.seat = nil
	b.mu.Unlock()
}

// ownerWatch rings when the process that owns the lease ends. The zero value
// watches nobody.
type ownerWatch struct {
	pid    uint32
	term   uint64
	handle *proc.Handle
	stop   chan struct{}
}

// follow turns to the owner of term.
func (w *ownerWatch) follow(c *contender, pid uint32, term uint64, b *bell) {
	if w.pid == pid && w.term == term && (pid == 0 || w.handle != nil) {
		return
	}
	w.drop()
	w.pid, w.term = pid, term
	if pid == 0 || pid == c.pid {
		return
	}
	// Without a seat only its beats count; one that is dead is found by Dead.
	m, ok := c.table.Of(pid)
	if !ok {
		return
	}
	h, err := proc.OpenHandle(m.Identity)
	if err != nil {
		return
	}
	w.handle, w.stop = h, make(chan struct{})
	go func(stop <-chan struct{}) {
		select {
		case <-h.Done():
			b.ring()
		case <-stop:
		}
	}(w.stop)
}

func (w *ownerWatch) drop() {
	if w.handle != nil {
		close(w.stop)
		w.handle.Close()
		w.handle = nil
	}
}

// promote passes the gate, if there is one, and publishes the claim's term in
// the active word behind the fence.
func (k *keeper) promote(ctx context.Context, reason role.Reason) error {
	for {
		c := k.e.Control()
		pid, term := k.e.Active()
		gated := c.Gate && c.GrantedTerm != k.term
		// An earlier claim of this process that was lost and not released yet
		// cannot be killed to make room.
		mine := pid == k.pid && term < k.term && k.seg.Params().Fence != shm.FenceToken
		if !gated && !mine {
			break
		}
		select {
		case <-k.changed:
		case <-k.lost:
			return ErrLost
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return k.e.Promote(ctx, election.Promotion{PID: k.pid, Term: k.term, Ask: reason == role.ReasonPreempt, Changed: k.changed})
}
