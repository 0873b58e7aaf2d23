package election

import (
	"errors"
	"fmt"
)

// These can be returned by a claim.
var (
	// ErrHeld: another owner has the lease, or the control word keeps it from
	// being claimed. Typed as *Refused by the strict verbs.
	ErrHeld = errors.New("lease is held")
	// ErrInvalidPID: pid 0, or one beyond 22 bits.
	ErrInvalidPID = errors.New("pid out of range: want 1 to 4194303")
	// ErrTermsExhausted: the segment has granted its last term. A segment of
	// a later generation must follow.
	ErrTermsExhausted = errors.New("segment has granted its last term")
	// ErrDamaged: the words contradict each other for longer than any order
	// of steps allows: the segment was written by something else.
	ErrDamaged = errors.New("segment words are damaged")
)

// These can be returned to an owner.
var (
	// ErrNotOwner: the caller does not own the lease in this term.
	ErrNotOwner = errors.New("not the owner")
	// ErrLost: the lease was taken from the caller, or is about to be: stop,
	// then release.
	ErrLost = errors.New("lease was lost")
	// ErrFenced: the owner word and the active word do not both name the
	// caller in its term: it may not act.
	ErrFenced = errors.New("fenced: not the active leader of this term")
	// ErrFenceTimeout: the predecessor could not be proven dead in time.
	ErrFenceTimeout = errors.New("predecessor is not proven dead")
	// ErrForbidden: the control word says closed or held.
	ErrForbidden = errors.New("the control word forbids leading")
)

// Why says why a claim was refused.
type Why uint8

const (
	WhyHeld     Why = iota + 1 // a healthy owner
	WhyPaused                  // no automatic change of owner
	WhyControl                 // held by the supervisor
	WhyClosed                  // the role stops
	WhyNominee                 // another member was named
	WhyOwnClaim                // this process owns it through another claim
)

func (w Why) String() string {
	switch w {
	case WhyHeld:
		return "its owner is healthy"
	case WhyPaused:
		return "the role is paused"
	case WhyControl:
		return "the role is held"
	case WhyClosed:
		return "the role is closed"
	case WhyNominee:
		return "another member was named to take over"
	case WhyOwnClaim:
		return "this process owns it through another claim"
	}
	return "unknown"
}

// Refused is a claim that was refused, with who has the lease.
type Refused struct {
	Owner uint32 // 0: nobody
	Term  uint64
	Why   Why
}

func (r *Refused) Error() string {
	if r.Owner == 0 {
		return fmt.Sprintf("lease (vacant since term %d) may not be claimed: %v", r.Term, r.Why)
	}
	return fmt.Sprintf("lease is held by pid %d in term %d: %v", r.Owner, r.Term, r.Why)
}

// Is makes every refusal match ErrHeld.
func (r *Refused) Is(target error) bool { return target == ErrHeld }
