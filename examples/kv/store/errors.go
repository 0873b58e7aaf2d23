package store

import "errors"

// Errors of opening and following a store. After one of them the files need a
// person: repeating the operation changes nothing.
var (
	// ErrCorrupt: something that counts cannot be read.
	ErrCorrupt = errors.New("store is damaged")
	// ErrAhead: the folder holds journals with tokens that are not lower than
	// the token of a leadership that is valid right now.
	ErrAhead = errors.New("store is ahead of the role's tokens")
	// ErrRole: the folder belongs to another role.
	ErrRole = errors.New("store belongs to another role")
)

// Errors of reading and writing as the leader.
var (
	// ErrNotLeader: the leadership is over; nothing was written or read.
	ErrNotLeader = errors.New("not the leader")
	// ErrUnconfirmed: the write may or may not count. Read it back, or repeat it.
	ErrUnconfirmed = errors.New("write is not confirmed")
	// ErrFull: there is no space for the write; nothing was written.
	ErrFull = errors.New("no space for the write")
	// ErrLimit: the key or the value is too long, or the key is empty.
	ErrLimit = errors.New("key or value is out of bounds")
)
