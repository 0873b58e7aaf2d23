package coord

import "github.com/standbyd/standbyd/coord/heartbeat"

// Mark says that unit (0 to 63) of this member's work is in flight, and Clear
// that it is done. What a leader has marked when it stops leading, however it
// ends, its successor reads with [Predecessor.InFlight]: mark before the first
// effect of a unit, clear after the last. What a unit is, the program decides;
// units beyond 63 are ignored. Marks outlast a leadership until they are
// cleared. Both are safe for concurrent use and allocate nothing; after Close
// they do nothing.
func (m *Member) Mark(unit uint) {
	m.onSeat(func(s *heartbeat.Seat) { s.Mark(unit) })
}

// Clear ends what Mark began.
func (m *Member) Clear(unit uint) {
	m.onSeat(func(s *heartbeat.Seat) { s.Clear(unit) })
}
