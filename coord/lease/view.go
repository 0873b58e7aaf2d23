package lease

import (
	"reflect"

	"github.com/standbyd/standbyd/coord/shm"
)

// View is the payload of an open segment as a value of type T. Anyone may read
// through it, with or without the lease; the owner of a claim writes (see
// [ClaimOf]). Safe for concurrent use; valid while its segment is open.
type View[T any] struct{ p *Payload }

// ViewOf makes a view of a payload. ErrPayload if T holds pointers, is larger
// than a cell, or is not of the size that the segment was created for; a
// segment that records no type takes every T that fits, and begins with zeros.
func ViewOf[T any](p *Payload) (*View[T], error) {
	size, err := sizeOf[T]()
	if err != nil {
		return nil, err
	}
	if err := p.fits(reflect.TypeFor[T](), size); err != nil {
		return nil, err
	}
	return &View[T]{p}, nil
}

// Attach is ViewOf(PayloadOf(seg)): a view with a payload handle of its own.
func Attach[T any](seg *shm.Segment) (*View[T], error) { return ViewOf[T](PayloadOf(seg)) }

// Payload is the handle that the view reads through.
func (v *View[T]) Payload() *Payload { return v.p }

// Snapshot returns the committed value, never a torn one, and the term that
// owned the payload when it was read: 0 before the first claim. The value is
// the zero T if the commit word is damaged. It takes no lock and writes no
// shared memory, so readers cost the owner nothing; it copies again when a
// write was committed in between, so an owner that commits faster than a copy
// takes can delay it.
func (v *View[T]) Snapshot() (value T, term uint64) {
	p := v.p
	h := p.hot
	pause(pointReadCommit)
	c := h.Commit.Load()
	if cell := p.cells[c&cellBits>>32]; shm.PlainLoads && cell.Exists() {
		pause(pointReadCell)
		value = *shm.InPlace[T](cell)
		pause(pointReadAgain)
		if h.Commit.Load() == c {
			return value, termOf(c, h.Owner.Load())
		}
	}
	return snapshot[T](p)
}

// snapshot is Snapshot, from the beginning.
func snapshot[T any](p *Payload) (value T, term uint64) {
	c, err := load(p, &value)
	if err != nil {
		return value, 0
	}
	return value, termOf(c, p.hot.Owner.Load())
}

// load copies the committed value and returns the commit word that it stood
// under. (Rules R7 and R8.) The verbs that are to be fast have its first turn in
// their own body, in a straight line: a call costs as much as the copy.
func load[T any](p *Payload, value *T) (commit uint64, err error) {
	h := p.hot
	for {
		pause(pointReadCommit)
		c := h.Commit.Load()
		cell := p.cells[c&cellBits>>32]
		if !cell.Exists() {
			return c, ErrDamaged
		}
		pause(pointReadCell)
		shm.LoadValue(value, cell)
		pause(pointReadAgain)
		if h.Commit.Load() == c {
			return c, nil
		}
	}
}

// write publishes *value as the value of the owner (pid, term), packed in
// owner. ErrNotOwner if it does not own, or has lost the payload to a later
// term; then nothing was published. (Rules R5 and R6.)
//
// A write is begin, stores into the cell, publish. A process may be stopped or
// killed between any two instructions of it.
func write[T any](p *Payload, owner uint64, value *T) error {
	if !p.busy.tryLock() {
		if p.busy.lent() {
			return write(p.besideLent(), owner, value)
		}
		p.busy.lock()
	}
	err := writeLocked(p, owner, value)
	p.busy.unlock()
	return err
}

// writeLocked is write by whoever holds the handle's lock.
func writeLocked[T any](p *Payload, owner uint64, value *T) error {
	pause(pointWriteOwner)
	if !p.begin(owner) {
		return p.failed()
	}
	pause(pointFill)
	shm.StoreValue(p.cell(), value)
	pause(pointPublish)
	if !p.publish() {
		return p.failed()
	}
	increment(&p.count.write.ok)
	return nil
}
