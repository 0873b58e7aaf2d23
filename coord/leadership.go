package coord

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

// Leadership is one time of leading: one term, one token. Its methods are safe
// for concurrent use.
type Leadership struct {
	m       *Member
	term    uint64
	grant   election.Grant
	token   role.Token
	managed bool // Run's: lead's return ends it; else Resign does

	ctx       context.Context
	cancel    context.CancelCauseFunc
	phase     atomic.Int32
	stalled   atomic.Bool
	drainFrom atomic.Int64 // CLOCK_MONOTONIC ns of the end of ctx, 0 before
	ledAt     time.Time
	before    Predecessor
	watch     watch // on the owner before, to be dropped once the work has begun
	giving    atomic.Bool
	over      chan struct{} // closed when the lease was given back
}

func newLeadership(ctx context.Context, m *Member, g election.Grant) *Leadership {
	l := &Leadership{
		m: m, term: g.Term, grant: g,
		token: role.MakeToken(m.params.Generation, g.Term),
		ledAt: time.Now(),
		over:  make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.enter(phaseClaimed)
	context.AfterFunc(l.ctx, func() {
		l.drainFrom.Store(shm.MonoNow())
	})
	return l
}

func (l *Leadership) at() phase      { return phase(l.phase.Load()) }
func (l *Leadership) enter(ph phase) { l.phase.Store(int32(ph)) }

// Member is the seat that leads.
func (l *Leadership) Member() *Member { return l.m }

// Token is the fencing token of this leadership: higher than every earlier
// one's of the role. Storage that refuses a lower token than it has seen is
// safe from every earlier leader.
func (l *Leadership) Token() role.Token { return l.token }

// Reason is why this member got the lease.
func (l *Leadership) Reason() role.Reason { return l.grant.Reason }

// Check asks the segment whether this process may act for the role NOW: the
// owner word and the active word both name it in this term. It costs a few
// nanoseconds and allocates nothing; call it before each side effect. Once it
// has failed it fails for ever. The error is ErrFenced.
//
// Check still passes while lead drains after its context ended, unless the
// lease was lost: work under way may be finished. Between a Check and the
// effect that follows it a process can be paused for any time: what must not
// happen then has to be refused where it arrives, by the token.
func (l *Leadership) Check() error {
	if l.m.bars.Load() != 0 && l.m.bar() {
		return ErrFenced // who leads now is decided elsewhere
	}
	return l.m.elec.Check(l.m.pid, l.term)
}

// Context ends, with a cause ([context.Cause]), when leadership is lost or
// wanted back: ErrLost, ErrRoleClosed, ErrAskedToResign, ErrResigned,
// ErrStalled, ErrSegmentGone, ErrClosed, or the cause of Run's context. Under
// Run it is what lead got.
func (l *Leadership) Context() context.Context { return l.ctx }

// Predecessor is the process that led before this one.
func (l *Leadership) Predecessor() *Predecessor { return &l.before }

// Resign gives leadership up. Under Run it ends lead's context with ErrResigned
// and returns; the lease is released when lead has returned. After Campaign it
// says that the work has stopped: the lease is released when Resign returns.
//
// It does not wait for others, so the only error is that of a leadership that
// is over already: ErrLost.
func (l *Leadership) Resign(ctx context.Context) error {
	_ = ctx // nothing here blocks; the signature leaves room for what might
	if l.at() == phaseOver {
		return ErrLost
	}
	l.cancel(ErrResigned)
	if !l.managed {
		l.m.give(l)
		<-l.over
		l.m.busy.Store(false)
	}
	return nil
}
