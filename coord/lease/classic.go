package lease

import "github.com/standbyd/standbyd/coord/shm"

// TryAcquire makes one attempt to get the lease for pid and returns its term.
// It succeeds if nobody owns it, if the owner is more than grace epochs behind
// with its beats (at exactly grace it is not), or if pid is lower than the
// owner's; else ErrHeld. If pid owns it already the term stays the same and
// nothing changes. On success no earlier owner can publish to the payload any
// more. Other errors are ErrInvalidPID and ErrTermsExhausted.
func (l *OwnerLease[T]) TryAcquire(pid uint32, grace uint64) (term uint64, err error) {
	return l.e.TryClaim(pid, grace)
}

// Release gives the lease back: the next owner has a new term. ErrNotOwner if
// pid does not own it; nothing changes then.
func (l *OwnerLease[T]) Release(pid uint32) error { return l.e.StepDown(pid) }

// WithLease runs fn with the payload while pid owns the lease: TryAcquire, then
// fn on a copy of the value, then the copy is published as a whole, then
// Release. If fn panics the lease is released and the value stays as it was.
// The error of TryAcquire means that fn did not run; ErrNotOwner that the lease
// was lost while it ran, and nothing was published. fn must not keep its
// argument.
//
// A lease that pid held before is released too. Who writes through the same
// handle while fn runs, or in it, does so through a writer slot of its own,
// which can fail with ErrNoWriterSlot.
func (l *OwnerLease[T]) WithLease(pid uint32, grace uint64, fn func(*T)) error {
	term, err := l.e.TryClaim(pid, grace)
	if err != nil {
		return err
	}
	p := l.view.p
	if !p.busy.tryLend() {
		return l.withLease(pid, term, fn)
	}
	running := true
	defer func() {
		if running { // fn has panicked
			p.busy.unlock()
			_ = l.e.StepDown(pid)
		}
	}()
	if _, err = load(p, &l.with.value); err == nil {
		fn(&l.with.value)
		err = writeLocked(p, shm.PackOwner(pid, term), &l.with.value)
	}
	running = false
	p.busy.unlock()
	if rerr := l.e.StepDown(pid); err == nil {
		err = rerr
	}
	return err
}

// withLease is the rest of WithLease while the handle writes or is lent.
func (l *OwnerLease[T]) withLease(pid uint32, term uint64, fn func(*T)) (err error) {
	defer func() {
		if rerr := l.e.StepDown(pid); err == nil {
			err = rerr
		}
	}()
	var value T
	if _, err = load(l.view.p, &value); err != nil {
		return err
	}
	fn(&value)
	return write(l.view.p, shm.PackOwner(pid, term), &value)
}

// ReadAsOwner returns the value; ErrNotOwner if pid does not own the lease.
func (l *OwnerLease[T]) ReadAsOwner(pid uint32) (v T, err error) {
	p := l.view.p
	h := p.hot
	c := h.Commit.Load()
	if cell := p.cells[c&cellBits>>32]; shm.PlainLoads && cell.Exists() {
		v = *shm.InPlace[T](cell)
		if h.Commit.Load() == c {
			// The owner word is loaded after the value: it never holds a value
			// twice, so whoever is the owner now was it all the while.
			if o := h.Owner.Load(); o == l.mine.Load() && o>>42 == uint64(pid) {
				return v, nil
			}
		}
	}
	return l.readAsOwner(pid)
}

// readAsOwner is ReadAsOwner, from the beginning.
func (l *OwnerLease[T]) readAsOwner(pid uint32) (v T, err error) {
	p := l.view.p
	if _, err = load(p, &v); err != nil {
		return v, err
	}
	if !l.acts(pid, p.hot.Owner.Load()) {
		increment(&p.count.read.refused)
		var zero T
		return zero, ErrNotOwner
	}
	return v, nil
}

// acts reports whether o is the owner word under which this handle acts for
// pid, and remembers it in mine if it is.
func (l *OwnerLease[T]) acts(pid uint32, o uint64) bool {
	term := l.e.OwnTerm(pid)
	if term == 0 || o != shm.PackOwner(pid, term) {
		return false
	}
	l.mine.Store(o)
	return true
}

// WriteAsOwner publishes v as a whole; ErrNotOwner if pid does not own the
// lease: then nothing was published. The first write of a handle takes a
// writer slot, which can fail with ErrNoWriterSlot.
func (l *OwnerLease[T]) WriteAsOwner(pid uint32, v T) error {
	p := l.view.p
	o := l.mine.Load()
	if o>>42 == uint64(pid) && o == p.hot.Owner.Load() {
		return write(p, o, &v)
	}
	if o = p.hot.Owner.Load(); l.acts(pid, o) {
		return write(p, o, &v)
	}
	increment(&p.count.write.refused)
	return ErrNotOwner
}

// Snapshot is the committed value and the term that owned it, for anyone: see
// [View.Snapshot].
func (l *OwnerLease[T]) Snapshot() (v T, term uint64) { return l.view.Snapshot() }

// Beat says that pid lives. In an epoch that was beaten already it writes
// nothing. ErrNotOwner or ErrLost if pid does not own the lease, or has been
// found stale: it stops, then releases.
func (l *OwnerLease[T]) Beat(pid uint32) error { return l.e.BeatAsLeader(pid) }

// TickEpoch advances the epoch by one, unconditionally, and returns it.
func (l *OwnerLease[T]) TickEpoch() uint64 { return l.e.TickEpoch() }

// Epoch is the segment's tick counter.
func (l *OwnerLease[T]) Epoch() uint64 { return l.e.Epoch() }

// CurrentOwner is the pid that owns the lease; ok is false if nobody does.
func (l *OwnerLease[T]) CurrentOwner() (pid uint32, ok bool) { return l.e.CurrentLeader() }

// IsOwner reports whether pid owns the lease, in the term in which this handle
// knows it.
func (l *OwnerLease[T]) IsOwner(pid uint32) bool { return l.e.IsLeader(pid) }

// Term is the latest term, owned or not: 0 before the first claim, and one
// more with every change of owner.
func (l *OwnerLease[T]) Term() uint64 { return l.e.Term() }

// Token is the fencing token of the latest term: generation<<42 | term.
func (l *OwnerLease[T]) Token() uint64 { return l.e.Token() }
