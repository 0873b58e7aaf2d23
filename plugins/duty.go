package plugins

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/plugins/internal/wire"
)

// ErrNotLeading is wrapped by what [Duty.Check] returns, and is a cause of the
// context of Start, once the leadership that the duty began with is over.
var ErrNotLeading = errors.New("the role's leadership has ended")

// ErrDemoted is the cause of Start's context after an orderly OnDemote;
// errors.Is(ErrDemoted, ErrNotLeading) holds.
var ErrDemoted = fmt.Errorf("demoted: %w", ErrNotLeading)

const (
	// DefaultDrainLimit is how long Start may go on after its context ended.
	DefaultDrainLimit = 5 * time.Second

	watchEvery    = 20 * time.Millisecond // how soon a duty hears of a loss that no hook announced
	retryMin      = time.Second
	retryMax      = 30 * time.Second
	exitBeforeEnd = 100 * time.Millisecond // ahead of a hook's deadline, when the supervisor kills
)

// Duty is work that is done for exactly as long as its role is led: Start runs
// from promote to demote. It implements Promoter, Demoter and Stopper; embed
// it in a struct that has more hooks, or serve it alone. The zero value with
// Start set is ready; set it before Serve.
//
//	OnPromote ─▶ Start(ctx) runs ... ─▶ OnDemote | token lost | supervisor gone ─▶ ctx ends ─▶ Start returns
//
// One Start runs at a time. OnPromote with the same token while it runs, or
// after it returned nil, does nothing.
type Duty struct {
	// Start does the work and returns soon after ctx has ended; context.Cause
	// says why. Returning nil earlier means that the duty is done for this
	// leadership; an error is logged and Start is called again after a pause,
	// with the same token, while the leadership lasts. A panic ends the
	// process, and the supervisor starts it again.
	//
	// A Start that has not returned by the deadline of OnDemote, or within
	// DrainLimit of a loss that nobody announced, ends the process: nothing
	// else can make code stop.
	Start func(ctx context.Context, t Transition) error

	// DrainLimit is for a loss without OnDemote. Zero means DefaultDrainLimit.
	DrainLimit time.Duration

	mu      sync.Mutex // held by OnPromote, OnDemote and Stop from end to end
	highest role.Token // promoted for so far
	current atomic.Pointer[dutyRun]
}

// dutyRun is one leadership of one Duty.
type dutyRun struct {
	t      Transition
	guard  *guard // nil if the role has no segment
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when Start has returned for good
}

// Check reports NOW whether the leadership that Start was called for still
// holds: nil, or an error that wraps ErrNotLeading. Call it right before every
// side effect. It reads the role's segment (no system call, well under a
// microsecond) and so also notices a loss of which the supervisor did not tell,
// stopped or dead. Safe for concurrent use, also outside Start.
//
// A process that is paused between Check and the side effect may do it late:
// storage that can, compares Transition.Token.
func (d *Duty) Check() error {
	r := d.current.Load()
	if r == nil {
		return ErrNotLeading
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.guard == nil {
		return nil
	}
	return r.guard.check()
}

// OnPromote begins the duty, after it ended one of an earlier token.
func (d *Duty) OnPromote(ctx context.Context, t Transition) error {
	if d.Start == nil {
		return errors.New("begin duty: Duty.Start is not set")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.Token < d.highest {
		return fmt.Errorf("begin duty: token %s is older than %s, which this plugin was promoted for: %w", t.Token, d.highest, ErrNotLeading)
	}
	if r := d.current.Load(); r != nil {
		if r.t.Token == t.Token && r.ctx.Err() == nil {
			return nil
		}
		d.end(ctx, r, ErrDemoted)
	}
	r := &dutyRun{t: t, done: make(chan struct{})}
	if t.Segment != "" {
		g, err := openGuard(t)
		if err != nil {
			return fmt.Errorf("begin duty: %w", err)
		}
		if err := g.look(); err != nil {
			// Overtaken by the next change; OnDemote is on its way.
			g.close()
			log.Printf("the leadership is over already, and nothing is begun: %v", err)
			return nil
		}
		r.guard = g
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	d.highest = t.Token
	d.current.Store(r)
	go d.run(r)
	if r.guard != nil {
		go d.watch(r)
	}
	return nil
}

// OnDemote ends the duty and returns when Start has returned.
func (d *Duty) OnDemote(ctx context.Context, t Transition) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.current.Load(); r != nil && r.t.Token <= t.Token {
		d.end(ctx, r, ErrDemoted)
	}
	return nil
}

// Stop ends the duty, whatever its token.
func (d *Duty) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.current.Load(); r != nil {
		d.end(ctx, r, ErrDemoted)
	}
	return nil
}

func (d *Duty) run(r *dutyRun) {
	defer close(r.done)
	pause := retryMin
	for {
		began := time.Now()
		err := d.Start(r.ctx, r.t)
		if err == nil || r.ctx.Err() != nil {
			return
		}
		if time.Since(began) > retryMax {
			pause = retryMin
		}
		log.Printf("duty failed, next try in %v: %v", pause, err)
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, retryMax)
	}
}

// watch ends the duty when the segment names another leader, even if nobody
// calls OnDemote: the supervisor may be stopped, or starved.
func (d *Duty) watch(r *dutyRun) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return // end waits for Start
		case <-tick.C:
		}
		err := r.guard.look()
		if err == nil {
			continue
		}
		r.cancel(err)
		select {
		case <-r.done:
		case <-time.After(d.drainLimit()):
			exitOverdue(r.t, d.drainLimit())
		}
		return
	}
}

// end cancels r and waits for its Start. It does not return while Start runs:
// past the deadline the process exits.
func (d *Duty) end(ctx context.Context, r *dutyRun, cause error) {
	r.cancel(cause)
	limit := d.drainLimit()
	if deadline, ok := ctx.Deadline(); ok {
		// Ahead of the supervisor's own kill, so that the log says why.
		left := time.Until(deadline)
		limit = left - min(exitBeforeEnd, left/10)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		exitOverdue(r.t, limit)
	}
	if r.guard != nil {
		r.guard.close()
	}
	d.current.Store(nil)
}

func (d *Duty) drainLimit() time.Duration {
	if d.DrainLimit > 0 {
		return d.DrainLimit
	}
	return DefaultDrainLimit
}

func exitOverdue(t Transition, limit time.Duration) {
	fmt.Fprintf(os.Stderr, "duty of token %s went on for %v after its context ended: exiting\n", t.Token, limit.Round(time.Millisecond))
	os.Exit(wire.ExitLost)
}
