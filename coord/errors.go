package coord

import (
	"errors"

	"github.com/standbyd/standbyd/coord/election"
)

// ExitStatus is the status with which this package ends a process whose lead
// did not return within the drain limit.
const ExitStatus = 75

// Reported when a process joins.
var (
	// ErrNotSupervised: the process was not launched as a worker of a role.
	ErrNotSupervised = errors.New("not launched by standbyd")
	// ErrEnvironment: it was, but what it was told makes no sense.
	ErrEnvironment = errors.New("bad launch environment")
	// ErrAlreadyMember: this process has joined the segment already.
	ErrAlreadyMember = errors.New("this process is a member of the segment already")
)

// Reported by a Member's methods.
var (
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the member is closed")
	// ErrBusy: Run or Campaign is under way, or its leadership has not ended.
	ErrBusy = errors.New("the member campaigns or leads already")
	// ErrNoLeader: nobody holds the role.
	ErrNoLeader = errors.New("nobody leads")
	// ErrSegmentGone: the segment's file was removed, replaced or cut short.
	// The role goes on in another segment, if at all; this process must join
	// anew or end.
	ErrSegmentGone = errors.New("the segment is gone")
	// ErrSeatLost: another process has taken this one for dead and freed its
	// seat. Without one its death could not be proven, so it must not lead; it
	// must join anew or end.
	ErrSeatLost = errors.New("the seat was lost")
	// ErrNoListener: the supervisor holds no such socket for this role.
	ErrNoListener = errors.New("no such listener")
)

// Causes with which the context of a leadership ends (see [context.Cause]),
// beside ErrSegmentGone, ErrSeatLost, ErrClosed and the cause of Run's own context.
var (
	// ErrLost: another process took the lease, or it was evicted.
	ErrLost = election.ErrLost
	// ErrRoleClosed: the role is being shut down.
	ErrRoleClosed = errors.New("the role is closed")
	// ErrAskedToResign: the supervisor wants this term to end.
	ErrAskedToResign = errors.New("the supervisor asked for the resignation")
	// ErrResigned: Leadership.Resign was called, or lead has returned.
	ErrResigned = errors.New("resigned")
	// ErrStalled: no progress for the segment's progress limit.
	ErrStalled = errors.New("no progress")
)

// ErrFenced is what Leadership.Check reports once the process may not act for
// the role any more.
var ErrFenced = election.ErrFenced
