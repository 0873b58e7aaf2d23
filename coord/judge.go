package coord

import "time"

// phase is how far a leadership has come. It only rises.
type phase int32

const (
	phaseClaimed phase = 1 // the lease is ours; the grant and the fencing are awaited
	phaseLeading phase = 2 // A names us; lead runs
	phaseOver    phase = 3 // lead has returned; A and O are being given back
)

// sight is one leadership of this member at one moment, as the beat goroutine
// finds it. Every duration is measured on CLOCK_MONOTONIC.
type sight struct {
	phase         phase
	owner         bool          // O names (me, T)
	segmentGone   bool          //
	closed        bool          // control word
	resign        bool          // control word: resignation wanted for T
	stalled       bool          // has been condemned for lack of progress in this term
	still         time.Duration // since the last progress, 0 if progress is not watched
	progressLimit time.Duration // 0: none
	draining      bool          // the leadership's context has ended
	drained       time.Duration // since then
	drainLimit    time.Duration // 0: none
}

// order is what follows from a sight.
type order struct {
	beat   bool  // say that the owner lives
	cancel error // end the leadership's context with this cause
	exit   bool  // end the process
}

// judge decides over a leadership. It reads no clock and touches nothing.
//
// The order of the causes matters: whoever lost the lease may not beat,
// whatever else is the case; a hang stops the beats so that others take over;
// all else is a drain under beats.
func judge(s sight) order {
	var o order
	switch {
	case s.phase == phaseOver:
		// Between the return of lead and the release: still ours.
		o.beat = s.owner && !s.segmentGone
		return o
	case s.segmentGone:
		o.cancel = ErrSegmentGone
	case !s.owner:
		o.cancel = ErrLost
	case s.stalled || stalls(s):
		o.cancel = ErrStalled
	case s.closed:
		o.beat, o.cancel = true, ErrRoleClosed
	case s.resign:
		o.beat, o.cancel = true, ErrAskedToResign
	default:
		o.beat = true
	}
	o.exit = s.draining && s.drainLimit > 0 && s.drained > s.drainLimit
	return o
}

// stalls: a lead that has been told to stop answers to the drain limit
// instead, and one that has not begun makes no progress to speak of.
func stalls(s sight) bool {
	return s.phase == phaseLeading && !s.draining && s.progressLimit > 0 && s.still > s.progressLimit
}
