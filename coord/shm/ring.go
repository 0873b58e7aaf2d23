package shm

// ClaimRecord is what the claimant of a term writes into the ring.
type ClaimRecord struct {
	PID, Previous         uint32
	Seat                  int // -1 none
	Reason                uint64
	DetectedAt, ClaimedAt int64 // CLOCK_MONOTONIC nanoseconds, 0 unknown
}

// RecordPlainClaim is RecordClaim of a vacant lease without times.
func (s *Segment) RecordPlainClaim(term uint64, pid uint32, seat int, reason uint64) {
	e := &s.plain[int(term)&(len(s.plain)-1)]
	if e[0] > term {
		return
	}
	e[0] = 0
	e[1], e[2], e[3], e[4] = uint64(pid), uint64(seat+1), 0, reason
	e[5], e[6], e[7], e[8], e[9], e[10], e[11] = 0, 0, 0, 0, 0, 0, 0
	e[0] = term
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
