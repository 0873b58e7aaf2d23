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
	for {
		pause(pointReadCommit)
		c := p.commit.Load()
		cell := p.cells[c&cellBits>>32]
		if cell == nil {
			return value, 0
		}
		pause(pointReadCell)
		shm.LoadValue(&value, cell)
		pause(pointReadAgain)
		if p.commit.Load() == c {
			return value, termOf(c, p.owner.Load())
		}
	}
}

// load copies the committed value and returns the commit word that it stood
// under. (Rules R7 and R8.) The verbs that are to be fast have its loop in
// their own body: a second call costs as much as the copy.
func load[T any](p *Payload, value *T) (commit uint64, err error) {
	for {
		c := p.commit.Load()
		cell := p.cells[c&cellBits>>32]
		if cell == nil {
			return c, ErrDamaged
		}
		shm.LoadValue(value, cell)
		if p.commit.Load() == c {
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
func write[T any](p *Payload, owner uint64, value *T) (err error) {
	p.busy.lock()
	pause(pointWriteOwner)
	if !p.begin(owner) {
		err = p.why
	} else {
		pause(pointFill)
		shm.StoreValue(p.cell(), value)
		pause(pointPublish)
		if !p.publish() {
			err = p.why
		}
	}
	p.count.write.add(err)
	p.busy.unlock()
	return err
}
