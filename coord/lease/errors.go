package lease

import (
	"errors"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
)

// These can be returned when a lease is created or opened, or a payload is
// attached. Those of package shm for damaged and foreign files come through as
// they are.
var (
	// ErrExists: the path exists. It was not touched.
	ErrExists = shm.ErrExists
	// ErrPayload: T cannot be shared between processes, or it is not the type
	// that the segment was created for.
	ErrPayload = errors.New("payload type does not fit")
)

// These can be returned by the verbs.
var (
	// ErrHeld: another process owns the lease, and the rules do not let this
	// one take it.
	ErrHeld = election.ErrHeld
	// ErrNotOwner: pid does not own the lease, or not in the term in which
	// this handle knows it.
	ErrNotOwner = election.ErrNotOwner
	// ErrInvalidPID: pid 0, or one beyond 22 bits.
	ErrInvalidPID = election.ErrInvalidPID
	// ErrLost: the claim's term is over.
	ErrLost = election.ErrLost
	// ErrFenced: the claim may not act: its term is over, or it is not the
	// one that the active word names.
	ErrFenced = election.ErrFenced
	// ErrTermsExhausted: the segment has granted its last term; create a new one.
	ErrTermsExhausted = election.ErrTermsExhausted
	// ErrNoWriterSlot: all writer slots belong to open handles of processes
	// that are not proven gone.
	ErrNoWriterSlot = errors.New("no free writer slot")
	// ErrDamaged: the commit word names a cell that the segment does not have.
	ErrDamaged = errors.New("payload's commit word is damaged")
	// ErrClosed: the handle was closed.
	ErrClosed = errors.New("lease handle is closed")
)
