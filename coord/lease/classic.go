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
// A lease that pid held before is released too.
func (l *OwnerLease[T]) WithLease(pid uint32, grace uint64, fn func(*T)) (err error) {
	term, err := l.TryAcquire(pid, grace)
	if err != nil {
		return err
	}
	value := l.with.borrow()
	defer func() {
		l.with.giveBack(value)
		if rerr := l.Release(pid); err == nil {
			err = rerr
		}
	}()
	owner := shm.PackOwner(pid, term)
	if _, err = load(l.view.p, value); err != nil {
		return err
	}
	fn(value)
	return write(l.view.p, owner, value)
}

// ReadAsOwner returns the value; ErrNotOwner if pid does not own the lease.
func (l *OwnerLease[T]) ReadAsOwner(pid uint32) (v T, err error) {
	p := l.view.p
	for {
		c := p.commit.Load()
		cell := p.cells[c&cellBits>>32]
		if cell == nil {
			return v, ErrDamaged
		}
		shm.LoadValue(&v, cell)
		if p.commit.Load() == c {
			break
		}
	}
	// The owner word is loaded after the value: it never holds a value twice,
	// so whoever is the owner now was it all the while.
	if o := p.owner.Load(); (pid == 0 || o>>42 != uint64(pid) || o != l.mine.Load()) && !l.acts(pid, o) {
		var zero T
		increment(&p.count.read.refused)
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
	o := l.mine.Load()
	if pid == 0 || o>>42 != uint64(pid) || o != l.view.p.owner.Load() {
		if o = l.view.p.owner.Load(); !l.acts(pid, o) {
			increment(&l.view.p.count.write.refused)
			return ErrNotOwner
		}
	}
	return write(l.view.p, o, &v)
}

// Snapshot is the committed value and the term that owned it, for anyone: see
// [View.Snapshot].
func (l *OwnerLease[T]) Snapshot() (v T, term uint64) {
	p := l.view.p
	for {
		c := p.commit.Load()
		cell := p.cells[c&cellBits>>32]
		if cell == nil {
			return v, 0
		}
		shm.LoadValue(&v, cell)
		if p.commit.Load() == c {
			return v, termOf(c, p.owner.Load())
		}
	}
}

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
