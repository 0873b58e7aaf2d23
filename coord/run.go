package coord

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// Run joins the role that this process was launched for, warms up, says Ready,
// contends, and calls lead each time it becomes leader, until ctx ends. Then a
// lead under way is cancelled and waited for, the lease is released, the seat
// is left, and Run returns nil. Other errors: those of Join, of the warm-up,
// and ErrSegmentGone.
//
// lead is never called concurrently with itself. Its context is cancelled with
// a cause when leadership is lost or wanted back (see [Leadership.Context]);
// it must return soon then, within the drain limit of the segment's header, or
// the process ends with status 75. If it returns nil of its own, the member
// resigns and contends again after a short back-off; after an error the
// back-off is longer, so that others go first. A panic in lead ends the
// process. A nil lead is for WithCallbacks, or for a worker that only reserves
// the role.
//
// Run installs no signal handler:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := coord.Run(ctx, lead)
func Run(ctx context.Context, lead func(context.Context, *Leadership) error, opts ...Option) error {
	m, err := Join(ctx, opts...)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return nil
		}
		return err
	}
	defer m.Close()
	return m.Run(ctx, lead)
}

// Run is the function Run for a member that has joined. It leaves the seat
// taken; Close gives it up. One Run or Campaign at a time, else ErrBusy.
func (m *Member) Run(ctx context.Context, lead func(context.Context, *Leadership) error) error {
	if !m.busy.CompareAndSwap(false, true) {
		return fmt.Errorf("run: %w", ErrBusy)
	}
	defer m.busy.Store(false)
	m.underWay.Lock()
	defer m.underWay.Unlock()
	err := m.run(ctx, lead)
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		return nil
	}
	return err
}

func (m *Member) run(ctx context.Context, lead func(context.Context, *Leadership) error) error {
	if m.opts.warmup != nil && !m.ready.Load() {
		if err := m.opts.warmup(ctx, m); err != nil {
			return fmt.Errorf("warm up %s: %w", m.name, err)
		}
	}
	if err := m.stopped(ctx); err != nil {
		return err
	}
	if err := m.Ready(); err != nil {
		return err
	}
	var rest pauses
	for {
		l, err := m.campaign(ctx, ctx, true, &rest)
		if err != nil {
			return err
		}
		err, cause := m.perform(l, lead)
		m.give(l)
		if err := m.stopped(ctx); err != nil {
			return err
		}
		if d := rest.after(err, cause, time.Since(l.ledAt), rand.Float64()); d > 0 {
			if err := m.pause(ctx, d); err != nil {
				return err
			}
		}
	}
}

// errGoexit stands for a lead that left by runtime.Goexit.
var errGoexit = errors.New("lead ended its goroutine")

// perform runs the worker's code for one leadership and returns when all of it
// has returned: with the error of lead, and with the cause for which the
// context had ended by then, nil if lead returned of its own. The code runs on
// goroutines of its own, so that nothing above Run can catch a panic and leave
// half a leader behind. Where lead is all there is, its goroutine gives the
// lease back itself: whoever is to follow need not wait until the scheduler has
// come to another one.
func (m *Member) perform(l *Leadership, lead func(context.Context, *Leadership) error) (err, cause error) {
	c := m.opts.callbacks
	if c == nil {
		c = &Callbacks{}
	}
	if lead == nil {
		lead = func(ctx context.Context, _ *Leadership) error { <-ctx.Done(); return nil }
	}
	beside, done := make(chan error, 1), make(chan error, 1)
	if c.OnStartedLeading != nil {
		spawn(beside, func() error { c.OnStartedLeading(l.ctx); return nil }, nil)
	} else {
		beside <- nil
	}
	spawn(done, func() error { return lead(l.ctx, l) }, func() {
		// Asked by Err, which takes no lock: whoever ends a context holds its
		// lock until everybody has been told, lead being the first of them.
		told := l.ctx.Err() != nil
		if !told {
			l.cancel(ErrResigned)
		}
		if c.OnStartedLeading == nil && c.OnStoppedLeading == nil {
			m.give(l)
		}
		if told {
			cause = context.Cause(l.ctx)
		}
	})
	// lead first, on this very thread; what others are to hear comes after.
	runtime.Gosched()
	m.notify.say(sayLook | sayActive)
	l.watch.drop()
	err = <-done
	<-beside
	if c.OnStoppedLeading != nil {
		spawn(done, func() error { c.OnStoppedLeading(); return nil }, nil)
		<-done
	}
	return err, cause
}

// spawn runs f on a goroutine of its own, then after unless it is nil, and
// delivers what f returned.
func spawn(result chan<- error, f func() error, after func()) {
	go func() {
		err := errGoexit
		defer func() {
			if r := recover(); r != nil {
				panic(r) // only Goexit may pass for a return
			}
			if after != nil {
				after()
			}
			result <- err
		}()
		err = f()
	}()
}
