package filelease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lease is a lease that was granted. It is held until Release, the end of the
// process, or until it was not renewed for its TTL (but see Claimant.Pinned).
// Safe for concurrent use.
type Lease struct {
	store      *Store
	key        string
	epoch      uint64
	claim      string
	run, block string
	pinned     bool
	done       chan struct{}

	mu      sync.Mutex
	renewed time.Duration // the stamp of the last renewal
	err     error         // why it is lost
	keeping bool
	free    bool // its use of the lock on KEY.live has ended
}

// Key is what was claimed.
func (l *Lease) Key() string { return l.key }

// Epoch is above that of every earlier lease of the key: a fencing token.
func (l *Lease) Epoch() uint64 { return l.epoch }

// Interval is how often Keep renews: what is left between Done and the end.
func (l *Lease) Interval() time.Duration { return l.store.renew }

// Done is closed when the lease is lost or released. A loss is found by Keep,
// Renew and Verify; if Keep runs, at the latest one renew interval before
// anybody else can get the lease for want of renewals. A process that was
// suspended meanwhile learns it when it goes on: so Verify before acting. Release
// also what is lost, once nothing acts under it: until then, the lock on
// KEY.live keeps others away where it can.
func (l *Lease) Done() <-chan struct{} { return l.done }

// Err is nil until Done is closed, and then the reason: a *HeldError or one
// that wraps ErrLost.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// lose ends the lease, for the first reason only.
func (l *Lease) lose(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = why
		close(l.done)
	}
}

// letGo ends this Lease's use of the lock on KEY.live. A holder that lost by
// time keeps the lock until Release: it may still be acting.
func (l *Lease) letGo() {
	l.mu.Lock()
	free := l.free
	l.free = true
	l.mu.Unlock()
	if !free {
		letGo(l.claim)
	}
}

// renewedAt notes a renewal; false if the lease was lost before.
func (l *Lease) renewedAt(stamp time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.renewed = stamp
	}
	return l.err == nil
}

// sinceRenewal is how long ago the last renewal was.
func (l *Lease) sinceRenewal() time.Duration {
	now := l.store.clock.Boottime()
	l.mu.Lock()
	defer l.mu.Unlock()
	return now - l.renewed
}

// timed reports whether time alone can end the lease.
func (l *Lease) timed() bool { return !l.pinned || l.store.network }

// Keep renews the lease in the background, by a timer of its own, until ctx
// ends or Done is closed. It does not release it. A second Keep does nothing.
func (l *Lease) Keep(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.keeping {
		l.keeping = true
		go l.keep(ctx)
	}
}

const (
	retriesPerInterval = 4 // after a renewal that failed
	looksPerInterval   = 4 // timers stand still while the machine sleeps
)

func (l *Lease) keep(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	interval := l.store.renew
	limit := l.store.ttl - interval
	due := interval                // after the last renewal
	results := make(chan error, 1) // the disk may hang: the loop must not
	running := false
	var failed error
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		age := l.sinceRenewal()
		if l.timed() && age >= limit {
			why := fmt.Errorf("lease %q: %w: it was not renewed for %v", l.key, ErrLost, age.Round(time.Millisecond))
			if failed != nil {
				why = fmt.Errorf("%w: %w", why, failed)
			}
			l.lose(why)
			return
		}
		if !running && age >= due {
			running = true
			go func() { results <- l.store.Renew(ctx, l) }()
		}
		wait := interval / looksPerInterval
		if !running {
			wait = min(wait, due-age)
		}
		if l.timed() {
			wait = min(wait, limit-age)
		}
		timer.Reset(max(wait, time.Microsecond))
		select {
		case <-ctx.Done():
			return
		case <-l.done:
			return
		case <-timer.C:
		case err := <-results:
			running, failed, due = false, err, interval
			if err != nil {
				due = l.sinceRenewal() + interval/retriesPerInterval
			}
		}
	}
}

// Renew makes the lease last for another TTL. If it is lost, the error is a
// *HeldError or wraps ErrLost, and nothing was written. Another error, such as
// a full disk, left the old record as it was: try again before the TTL is over.
func (s *Store) Renew(ctx context.Context, l *Lease) error {
	return s.update(ctx, l, func(*record) {})
}

func (s *Store) update(ctx context.Context, l *Lease, change func(*record)) error {
	return s.holding(ctx, l, func(in section, r *record) error {
		change(r)
		if liveOf(l.claim) == nil {
			file, err := s.takeLive(l.key, l.pinned)
			if err != nil {
				return err
			}
			improve(l.claim, file)
		}
		r.Live = 0
		if file := liveOf(l.claim); file != nil {
			r.Live = fileNumber(file)
		}
		if err := in.check(); err != nil {
			return err
		}
		stamp, err := s.write(r)
		if err == nil && !l.renewedAt(stamp) {
			err = l.Err()
		}
		return err
	})
}

// Verify is a *HeldError, or wraps ErrLost, if the lease is no longer the
// caller's, or is not for want of renewals. Call it before acting on what the
// lease protects.
func (s *Store) Verify(ctx context.Context, l *Lease) error {
	return s.holding(ctx, l, func(section, *record) error { return nil })
}

// holding calls f inside the critical section if the lease is the caller's.
func (s *Store) holding(ctx context.Context, l *Lease, f func(section, *record) error) error {
	err := s.critical(ctx, l.key, func(in section) error {
		r, err := s.mine(l)
		if err != nil {
			return err
		}
		return f(in, r)
	})
	if errors.As(err, &errDeleted{}) {
		err = fmt.Errorf("%w: %w", ErrLost, err)
		l.lose(err)
		l.letGo()
	}
	return err
}

// mine is the record, if it is that of the lease, and ends the lease if not.
// Inside the critical section.
func (s *Store) mine(l *Lease) (*record, error) {
	f, err := s.find(l.key)
	if err != nil {
		return nil, err
	}
	lost := l.Err()
	var held *HeldError
	switch {
	case lost != nil && (f.r == nil || l.owns(f.r)):
		return nil, lost
	case f.damaged != nil:
		return nil, fmt.Errorf("%s is %w: %v", s.file(l.key, leaseSuffix), ErrUnreadable, f.damaged)
	case f.r == nil:
		err = fmt.Errorf("%w: its record was deleted", ErrLost)
	case !l.owns(f.r):
		held = &HeldError{Key: l.key, Holder: f.r.holder()}
		if left, certain := s.timeLeft(f.r); certain {
			held.Holder.ExpiresIn = max(left, 0)
		}
		err = held
	}
	if file := liveOf(l.claim); err == nil && file != nil {
		if same, lerr := leadsTo(s.file(l.key, liveSuffix), file); lerr != nil || !same {
			err = fmt.Errorf("%w: %s was deleted or replaced", ErrLost, s.file(l.key, liveSuffix))
		}
	}
	if err != nil {
		l.lose(wrapped(l.key, err))
		if held != nil {
			l.letGo() // in the new holder's way
		}
		return nil, err
	}
	if age := l.sinceRenewal(); l.timed() && age >= time.Duration(f.r.TTL) {
		err = fmt.Errorf("%w: it was not renewed for %v", ErrLost, age.Round(time.Millisecond))
		l.lose(wrapped(l.key, err))
		return nil, err
	}
	return f.r, nil
}

func (l *Lease) owns(r *record) bool {
	if r.Claim != "" { // of an older program otherwise
		return r.Claim == l.claim
	}
	return r.Epoch == l.epoch && r.Run == l.run && (r.Block == nil || *r.Block == l.block)
}

func wrapped(key string, err error) error {
	var held *HeldError
	if errors.As(err, &held) {
		return err
	}
	return fmt.Errorf("lease %q: %w", key, err)
}

// Release gives the lease back. If it is no longer the caller's, nothing
// happens. The counter stays.
func (s *Store) Release(ctx context.Context, l *Lease) error {
	err := s.critical(ctx, l.key, func(in section) error {
		f, err := s.find(l.key)
		if err != nil || f.r == nil || !l.owns(f.r) {
			return err
		}
		if next := s.own(l.key); next != nil && next != l && next.claim == l.claim && next.Err() == nil {
			return nil // this one was lost, and claimed again
		}
		if err := in.check(); err != nil {
			return err
		}
		if err := removeFile(s.file(l.key, leaseSuffix)); err != nil {
			return err
		}
		dropLive(l.claim) // in here: a lock without a record would be a riddle
		return nil
	})
	s.mu.Lock()
	if s.leases[l.key] == l {
		delete(s.leases, l.key)
	}
	s.mu.Unlock()
	l.lose(fmt.Errorf("lease %q: %w: it was released", l.key, ErrLost))
	l.letGo()
	if errors.As(err, &errDeleted{}) {
		return nil
	}
	return err
}
