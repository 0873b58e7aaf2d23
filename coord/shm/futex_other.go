//go:build !linux

package shm

import (
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// pollEvery is how often Wait looks on a system without a futex.
const pollEvery = time.Millisecond

// Wait polls the word until it no longer holds old or timeout has passed (0 or
// less: no timeout).
func Wait(word *atomic.Uint32, old uint32, timeout time.Duration) error {
	start := time.Now()
	for word.Load() == old {
		if timeout > 0 && time.Since(start) >= timeout {
			return nil
		}
		time.Sleep(pollEvery)
	}
	return nil
}

// WaitPatient is Wait.
func WaitPatient(word *atomic.Uint32, old uint32, until int64) error {
	return Wait(word, old, max(time.Duration(until-proc.MonoNow()), 1))
}

// WakeUrgent has nobody to wake: waiters poll.
func WakeUrgent(*atomic.Uint32) int { return 0 }

// Wake has nobody to wake: waiters poll.
func Wake(*atomic.Uint32, int) int { return 0 }

// WaitEither is ErrNotSupported on this system.
func WaitEither(_ *atomic.Uint32, _ uint32, _ *atomic.Uint32, _ uint32, _ time.Duration) error {
	return ErrNotSupported
}
