package shm

import "math"

// WakeSeat raises the event word of a seat and wakes whoever sleeps on it.
//
// No wake is lost: a waiter sets its waiting bit, reads the event word, judges
// what it waits for, and sleeps only while the event word is unchanged; a
// waker changes what is waited for, raises the word, and looks at the bit
// last. All of these are sequentially consistent.
func (s *Segment) WakeSeat(i int) {
	seat := &s.Seats[i]
	seat.Event.Add(1)
	if seat.Status.Load()&StatusWaiting != 0 {
		Wake(seat.Event, math.MaxInt32)
	}
}

// WakeSeatUrgent is WakeSeat for what one of the sleepers is in a hurry for: those
// of WaitPatient sleep on, and see it when they wake next.
func (s *Segment) WakeSeatUrgent(i int) {
	seat := &s.Seats[i]
	seat.Event.Add(1)
	if seat.Status.Load()&StatusWaiting != 0 {
		WakeUrgent(seat.Event)
	}
}

// WakeAll wakes every joined member. It costs one load when nobody ever joined.
func (s *Segment) WakeAll() {
	if s.Joins.Load() == 0 {
		return
	}
	for i := range s.Seats {
		if UnpackPhase(s.Seats[i].Phase.Load()).Phase == PhaseJoined {
			s.WakeSeat(i)
		}
	}
}

// SeatOf finds the joined seat of pid, -1 if there is none.
func (s *Segment) SeatOf(pid uint32) int {
	for i := range s.Seats {
		if p := UnpackPhase(s.Seats[i].Phase.Load()); p.Phase == PhaseJoined && p.PID == pid {
			return i
		}
	}
	return -1
}
