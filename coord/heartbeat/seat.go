package heartbeat

import (
	"fmt"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// Seat is this process's place in a table. Its methods are safe for
// concurrent use; none may be called after Leave.
type Seat struct {
	table    *Table
	w        *shm.SeatWords
	number   int
	identity proc.Identity
	phase    uint64
}

// Number is the seat's place in the table.
func (s *Seat) Number() int { return s.number }

// Identity is the one that the seat was taken for.
func (s *Seat) Identity() proc.Identity { return s.identity }

// Member is the seat's own row.
func (s *Seat) Member() Member {
	m, _ := read(s.w, s.number)
	return m
}

// Held reports whether the seat still is ours; false only if another process
// took us for dead.
func (s *Seat) Held() bool { return s.w.Phase.Load() == s.phase }

// Admitted is false as long as the member waits for the supervisor's consent.
func (s *Seat) Admitted() bool { return s.w.Status.Load()&shm.StatusUnadmitted == 0 }

// SetReady says whether this member can take over now.
func (s *Seat) SetReady(on bool) { s.set(shm.StatusReady, on) }

// SetRacing says whether this member would claim now. Those behind it in the
// order wait for it a moment if it would.
func (s *Seat) SetRacing(on bool) { s.set(shm.StatusRacing, on) }

// SetIdle says that the member waits for work, so that no progress is no hang.
func (s *Seat) SetIdle(on bool) { s.set(shm.StatusIdle, on) }

func (s *Seat) set(bit uint64, on bool) {
	if on {
		s.w.Status.Or(bit)
	} else {
		s.w.Status.And(^bit)
	}
}

// SetWatched says that the member reports progress.
func (s *Seat) SetWatched(on bool) { s.set(shm.StatusWatched, on) }

// SetCandidate sets what decides this member's place in the order.
func (s *Seat) SetCandidate(c Candidate) {
	word := uint64(uint32(c.Priority)) << 32
	if c.NoFailover {
		word |= 1
	}
	s.w.Candidate.Store(word)
	s.w.Lag.Store(c.Lag)
}

// Beat records a sign of life made in epoch. It stores nothing if the epoch
// has been recorded already.
func (s *Seat) Beat(epoch uint64) {
	if s.w.Beat.Load() != epoch {
		s.w.Beat.Store(epoch)
	}
}

// Pulse counts one unit of progress: one atomic add.
func (s *Seat) Pulse() { s.w.Progress.Add(1) }

// Progress is how often Pulse was called since the seat was taken.
func (s *Seat) Progress() uint64 { return s.w.Progress.Load() }

// Mark says that unit (0 to 63) of this member's work is in flight; Clear that
// it is done. Units beyond 63 are ignored.
func (s *Seat) Mark(unit uint) {
	if unit < 64 {
		s.w.InFlight.Or(1 << unit)
	}
}

// Clear ends what Mark began.
func (s *Seat) Clear(unit uint) {
	if unit < 64 {
		s.w.InFlight.And(^(uint64(1) << unit))
	}
}

// Event arms the seat's event word and returns its count, for WaitEvent. What
// is waited for must be judged after this call: a change before it is seen by
// the judging, one after it ends the wait.
func (s *Seat) Event() uint32 {
	s.set(shm.StatusWaiting, true)
	return s.w.Event.Load()
}

// WaitEvent blocks its thread until the event word no longer holds count, or
// timeout has passed (0: none). It may return early.
func (s *Seat) WaitEvent(count uint32, timeout time.Duration) error {
	if err := shm.Wait(s.w.Event, count, timeout); err != nil {
		return fmt.Errorf("wait for an event of seat %d: %w", s.number, err)
	}
	return nil
}

// WaitPatient is WaitEvent for a thread that has no part in taking the lease
// over: the hand-over to this member as planned does not end it. until is
// CLOCK_MONOTONIC in nanoseconds.
func (s *Seat) WaitPatient(count uint32, until int64) error {
	if err := shm.WaitPatient(s.w.Event, count, until); err != nil {
		return fmt.Errorf("wait for an event of seat %d: %w", s.number, err)
	}
	return nil
}

// Interrupt ends a WaitEvent of this seat.
func (s *Seat) Interrupt() { s.table.Wake(s.number) }

// Leave gives the seat back. The caller has released the lease before.
func (s *Seat) Leave() {
	p := shm.UnpackPhase(s.phase)
	s.w.Status.Store(0)
	s.w.Phase.CompareAndSwap(s.phase, shm.Phase{Phase: shm.PhaseFree, Incarnation: p.Incarnation}.Pack())
}
