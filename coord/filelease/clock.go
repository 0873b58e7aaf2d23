package filelease

import "time"

// Clock is the time that a Store sees. Its methods are called by several
// goroutines at once.
type Clock interface {
	// Boottime is the time since the machine's boot, suspended time included:
	// it decides when a lease is over.
	Boottime() time.Duration
	// Now is the wall clock, for people: it decides nothing.
	Now() time.Time
}

type systemClock struct{}

func (systemClock) Boottime() time.Duration { return boottime() }
func (systemClock) Now() time.Time          { return time.Now() }
