package coord

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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
// back-off is longer, so that others go first, and it is told on the standard
// error output, where standbyd reads it for the worker's log. A panic in lead ends the
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
		s := m.contend(ctx, lead, &rest)
		if s.none != nil {
			return s.none
		}
		m.give(s.l)
		if s.err != nil && s.cause == nil {
			fmt.Fprintf(os.Stderr, "standbyd: %s: lead with token %v returned: %v\n", m.name, s.l.Token(), s.err)
		}
		if err := m.stopped(ctx); err != nil {
			return err
		}
		if d := rest.after(s.err, s.cause, time.Since(s.l.ledAt), rand.Float64()); d > 0 {
			if err := m.pause(ctx, d); err != nil {
				return err
			}
		}
	}
}

// errGoexit stands for a lead that left by runtime.Goexit.
var errGoexit = errors.New("lead ended its goroutine")

// spell is one campaign, and the leadership that it won.
type spell struct {
	l      *Leadership
	none   error         // why there is no leadership
	beside chan struct{} // closed when what runs beside lead has returned
	err    error         // lead's
	cause  error         // for which the leadership's context had ended when lead returned, nil if it returned of its own
}

// contend goes through one spell, and returns when all of the worker's code has
// returned. The campaign and lead are one goroutine's: between the claim and
// lead's first step no other has to be woken. It is a goroutine of their own, so
// that nothing above Run can catch a panic and leave half a leader behind.
func (m *Member) contend(ctx context.Context, lead func(context.Context, *Leadership) error, rest *pauses) spell {
	var s spell
	done := make(chan struct{})
	go func() {
		defer func() {
			onlyGoexit(recover())
			close(done)
		}()
		if s.l, s.none = m.campaign(ctx, ctx, true, rest); s.none == nil {
			m.perform(&s, lead)
		}
	}()
	<-done
	if s.none == nil {
		<-s.beside
		if c := m.opts.callbacks; c != nil && c.OnStoppedLeading != nil {
			<-spawn(c.OnStoppedLeading)
		}
	}
	return s
}

// perform runs the worker's code for the leadership of s. Where lead is all
// there is, the lease is given back as soon as it has returned: whoever is to
// follow need not wait until the scheduler has come to another goroutine.
func (m *Member) perform(s *spell, lead func(context.Context, *Leadership) error) {
	l, c := s.l, m.opts.callbacks
	if c == nil {
		c = &Callbacks{}
	}
	if lead == nil {
		lead = func(ctx context.Context, _ *Leadership) error { <-ctx.Done(); return nil }
	}
	s.err = errGoexit
	defer func() {
		onlyGoexit(recover())
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
			s.cause = context.Cause(l.ctx)
		}
	}()
	if c.OnStartedLeading != nil {
		s.beside = spawn(func() { c.OnStartedLeading(l.ctx) })
	} else {
		s.beside = make(chan struct{})
		close(s.beside)
	}
	m.begun(l)
	s.err = lead(l.ctx, l)
}

// spawn runs f on a goroutine of its own, and closes what it returns when f has
// returned.
func spawn(f func()) chan struct{} {
	done := make(chan struct{})
	go func() {
		defer func() {
			onlyGoexit(recover())
			close(done)
		}()
		f()
	}()
	return done
}

// onlyGoexit goes on with a panic: only Goexit may pass for a return.
func onlyGoexit(r any) {
	if r != nil {
		panic(r)
	}
}
