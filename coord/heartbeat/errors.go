package heartbeat

import "errors"

// These can be returned when a process joins.
var (
	// ErrFull: every seat belongs to a process that is not proven gone.
	ErrFull = errors.New("no free seat")
	// ErrSupervised: the supervisor's seat belongs to a living process.
	ErrSupervised = errors.New("segment has a living supervisor")
	// ErrInvalidPID: pid 0, or one that an owner word cannot hold.
	ErrInvalidPID = errors.New("pid out of range")
)
