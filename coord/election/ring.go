package election

import (
	"slices"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

// RingEntry is what the segment keeps of one term. Times are CLOCK_MONOTONIC
// nanoseconds, 0 if unknown. For information: no decision rests on it.
type RingEntry struct {
	Term        uint64
	PID         uint32
	Seat        int // -1 none
	PreviousPID uint32
	Reason      role.Reason
	DetectedAt  int64 // the claimant knew that it might
	ClaimedAt   int64 // it owned the lease
	FencedAt    int64 // nobody that led before can act any more; 0 under fence "token"
	ActiveAt    int64 // it might act
	RetiredAt   int64 // it had stopped acting, in order
	EndedAt     int64 // earliest evidence that its process had ended, or had hung: see stampHang
	// InFlight is the work that its leader had in flight when it stopped
	// leading, one bit per unit; 0 while it leads.
	InFlight uint64
}

// Ring returns the latest terms, oldest first.
func (e *Election) Ring() []RingEntry {
	var all []RingEntry
	_, last := e.Owner()
	for i := range uint64(e.seg.RingSize()) {
		if r, ok := e.Entry(last - i); ok {
			all = append(all, r)
		}
	}
	slices.Reverse(all)
	return all
}

// Entry is the ring's entry of one term; ok is false if it was overwritten or
// never written.
func (e *Election) Entry(term uint64) (r RingEntry, ok bool) {
	w := e.seg.Ring(term)
	if term == 0 || term > shm.MaxTerm {
		return RingEntry{}, false
	}
	if w.Term.Load() != term {
		// A classic claim of a vacant lease leaves its owner word alone.
		pid, t := shm.UnpackOwner(w.Plain.Load())
		if t != term {
			return RingEntry{}, false
		}
		return RingEntry{Term: term, PID: pid, Seat: -1, Reason: role.ReasonStepDown}, true
	}
	r = RingEntry{
		Term: term, PID: uint32(w.PID.Load()), Seat: int(int64(w.Seat.Load())) - 1, PreviousPID: uint32(w.Previous.Load()),
		Reason:     reasonOf(w.Reason.Load()),
		DetectedAt: int64(w.DetectedAt.Load()), ClaimedAt: int64(w.ClaimedAt.Load()), ActiveAt: int64(w.ActiveAt.Load()), FencedAt: int64(w.FencedAt.Load()),
		RetiredAt: int64(w.RetiredAt.Load()), EndedAt: int64(w.EndedAt.Load()),
		InFlight: w.InFlight.Load(),
	}
	return r, w.Term.Load() == term
}

// entry is the ring's entry of term, for stamps; nil if it was overwritten. A
// term that was claimed plainly gets its entry here. Two that do this at once
// may lose a stamp.
func (e *Election) entry(term uint64) *shm.RingWords {
	w := e.seg.Ring(term)
	if w.Term.Load() == term {
		return w
	}
	pid, t := shm.UnpackOwner(w.Plain.Load())
	if t != term || term == 0 {
		return nil
	}
	e.seg.RecordClaim(term, shm.ClaimRecord{PID: pid, Seat: -1, Reason: uint64(causeStepDown)})
	return w
}

// StampEnd records when somebody first saw evidence that the owner of term had
// ended; the first stamp stays.
func (e *Election) StampEnd(term uint64, now int64) {
	if w := e.entry(term); w != nil {
		w.EndedAt.CompareAndSwap(0, uint64(now))
	}
}

// stampHang records the last beat of a hung owner as the end of its term. A
// heartbeat has no time, only an epoch: the time of the latest tick less a tick
// for each epoch since is the beginning of the epoch of that beat, to about a
// tick if the ticks came in time.
func (e *Election) stampHang(term uint64, beat shm.Heartbeat) {
	behind := shm.Behind(e.seg.Epoch.Load(), beat.Epoch)
	if at := int64(e.seg.TickedAt.Load()) - max(behind, 0)*int64(e.seg.Tick()); at > 0 {
		e.StampEnd(term, at)
	}
}
