package shm

import "unsafe"

// ClaimRecord is what the claimant of a term writes into the ring.
type ClaimRecord struct {
	PID, Previous         uint32
	Seat                  int // -1 none
	Reason                uint64
	DetectedAt, ClaimedAt int64 // CLOCK_MONOTONIC nanoseconds, 0 unknown
}

// RecordClaim writes the ring's entry of term, with plain stores: it is on the
// path of every claim, readers take it for information only, and compare the
// term before and after. An entry of a later term is left alone.
func (s *Segment) RecordClaim(term uint64, r ClaimRecord) {
	at := s.geo.ringAt(int(term) & (s.geo.ring - 1))
	e := (*[11]uint64)(unsafe.Pointer(&s.m.mem[at]))
	if e[0] > term {
		return
	}
	e[0] = 0
	e[1], e[2], e[3], e[4] = uint64(r.PID), uint64(r.Seat+1), uint64(r.Previous), r.Reason
	e[5], e[6], e[7], e[8], e[9], e[10] = uint64(r.DetectedAt), uint64(r.ClaimedAt), 0, 0, 0, 0
	e[0] = term
}
