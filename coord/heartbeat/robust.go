package heartbeat

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

// HoldRobust makes the end of the calling thread fire this member's robust
// words. The caller has locked its goroutine to a thread that it keeps until
// it drops the hold.
func (s *Seat) HoldRobust() (*shm.RobustHold, error) { return s.table.seg.HoldRobust(s.number) }

// SetWays says how this member's death, and that of others, is noticed.
func (s *Seat) SetWays(bits uint64) { s.w.Ways.Store(bits) }

// Vigil is a seat's wait for the robust thread of another member to end. The
// end is a hint that the member dies, and no proof: an execve ends the thread,
// too. The zero value waits for nothing. Not safe for concurrent use.
type Vigil struct {
	word   *atomic.Uint32
	thread uint64
	armed  uint32
}

// Vigil begins a wait for the end of owner's robust thread.
func (s *Seat) Vigil(owner Member) Vigil {
	if owner.Robust == 0 || owner.Seat == s.number {
		return Vigil{}
	}
	return Vigil{word: s.table.seg.RobustWord(owner.Seat, s.number), thread: owner.Robust}
}

// Arm readies the vigil and reports whether the thread has ended. It may have
// ended before the first Arm, and then says so to nobody: so look for the
// owner's death after Arm, and sleep only then.
func (v *Vigil) Arm() (fired bool) {
	if v.word == nil {
		return false
	}
	var ok bool
	if v.armed, fired, ok = shm.ArmRobust(v.word, v.thread); !ok {
		v.word = nil
	}
	return fired
}

// Keeps reports whether there is something to wait for.
func (v *Vigil) Keeps() bool { return v.word != nil && v.armed&shm.RobustDied == 0 }

// Wait blocks its thread until the robust thread ends or timeout has passed;
// it may return early. For systems on which WaitEventOr is ErrNotSupported.
func (v *Vigil) Wait(timeout time.Duration) error { return shm.Wait(v.word, v.armed, timeout) }

// Disturb ends a Wait of this vigil.
func (v *Vigil) Disturb() { shm.Wake(v.word, 1) }

// WaitEventOr is WaitEvent that also ends when v fires. The error matches
// shm.ErrNotSupported, and nothing was waited for, where the system cannot
// wait for two words at once.
func (s *Seat) WaitEventOr(v *Vigil, count uint32, timeout time.Duration) error {
	err := shm.WaitEither(s.w.Event, count, v.word, v.armed, timeout)
	if err != nil && !errors.Is(err, shm.ErrNotSupported) {
		err = fmt.Errorf("wait for an event of seat %d: %w", s.number, err)
	}
	return err
}
