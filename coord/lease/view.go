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
	c, err := v.p.read(shm.Bytes(&value))
	if err != nil {
		var zero T
		return zero, 0
	}
	return value, termOf(c, v.p.seg.Owner.Load())
}

// readAs reads as owner. The owner word is loaded after the value: an owner
// word never comes back, so whoever is the owner then was it all the while.
func (v *View[T]) readAs(owner uint64) (value T, err error) {
	_, err = v.p.read(shm.Bytes(&value))
	if v.p.seg.Owner.Load() != owner {
		var zero T
		return zero, ErrNotOwner
	}
	return value, err
}

// writeAs writes as owner.
func (v *View[T]) writeAs(owner uint64, value *T) error { return v.p.write(owner, shm.Bytes(value)) }
