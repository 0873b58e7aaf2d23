package shm

// ClaimRecord is what the claimant of a term writes into the ring.
type ClaimRecord struct {
	PID, Previous         uint32
	Seat                  int // -1 none
	Reason                uint64
	DetectedAt, ClaimedAt int64 // CLOCK_MONOTONIC nanoseconds, 0 unknown
}

// RecordPlainClaim notes the owner word of a term that was claimed while nobody
// owned the lease, by one plain store beside the entry: it is on the path of the
// claims that are to be fast, and a store waits in the processor until the one
// before is done. Everything else in the entry is what an earlier term left
// there, until [Segment.RecordClaim] makes the entry this term's. A later term
// that stands there already is left alone.
func (s *Segment) RecordPlainClaim(owner uint64) {
	if e := &s.plain[int(owner)&(len(s.plain)-1)]; e[ringClaim]&MaxTerm < owner&MaxTerm {
		e[ringClaim] = owner
	}
}

// RecordClaim writes the ring's entry of term, with plain stores: it is on the
// path of every claim, readers take it for information only, and compare the
// term before and after. An entry of a later term is left alone.
func (s *Segment) RecordClaim(term uint64, r ClaimRecord) {
	e := &s.plain[int(term)&(len(s.plain)-1)]
	if e[0] > term {
		return
	}
	e[0] = 0
	e[1], e[2], e[3], e[4] = uint64(r.PID), uint64(r.Seat+1), uint64(r.Previous), r.Reason
	e[5], e[6], e[7], e[8], e[9], e[10], e[11] = uint64(r.DetectedAt), uint64(r.ClaimedAt), 0, 0, 0, 0, 0
	e[0] = term
}
