package shm

// KeepInFlight notes in the ring's entry of term what pid, who led it, has in
// flight. Whoever takes (pid, term) out of the active word calls it before:
// until then the seat is not given to another, afterwards it may be. What is
// noted last is final once pid is proven dead, or is the caller.
func (s *Segment) KeepInFlight(pid uint32, term uint64) {
	r := s.Ring(term)
	seat := int(r.Seat.Load()) - 1
	if r.Term.Load() != term || uint32(r.PID.Load()) != pid || seat < 0 || seat >= len(s.Seats) {
		return
	}
	w := &s.Seats[seat]
	before := w.Phase.Load()
	if p := UnpackPhase(before); p.Phase != PhaseJoined || p.PID != pid {
		return
	}
	work := w.InFlight.Load()
	if w.Phase.Load() == before {
		r.InFlight.Store(work)
	}
}
