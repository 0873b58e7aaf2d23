package proc

import (
	"errors"
	"fmt"
)

// ErrGone is reported when the process that was asked for does not exist, or
// when its pid now belongs to another one.
var ErrGone = errors.New("no such process")

// Identity names one process for as long as the machine runs, also after its
// pid was given to another. The zero Identity names nobody. A field that is
// zero is unknown and proves nothing.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks between boot and the start of the process
	Boot  uint64 `json:"boot"`  // hash of the machine's boot id
	PIDNS uint64 `json:"pidns"` // inode of its pid namespace
}

// String is for errors and events: "pid 4711".
func (id Identity) String() string { return fmt.Sprintf("pid %d", id.PID) }

// Verdict is what can be proven about a process right now.
type Verdict int

const (
	// Alive: nothing proves its death.
	Alive Verdict = iota
	// Exiting: every one of its tasks is dead or past the point from which
	// none returns to user code, and the process as a whole ends, by a signal
	// or with a status other than 0. Its memory, ports and locks may still be
	// held. One that ends with status 0 is Alive until it is Gone.
	Exiting
	// Gone: it has been torn down; what it held is released or about to be.
	Gone
)

func (v Verdict) String() string {
	switch v {
	case Exiting:
		return "exiting"
	case Gone:
		return "gone"
	}
	return "alive"
}

// foreign reports what follows from where the process lives alone: decided is
// true when nothing in this machine's process table can say more.
func (id Identity) foreign(self Identity) (v Verdict, decided bool) {
	if id.Boot != 0 && self.Boot != 0 && id.Boot != self.Boot {
		return Gone, true // the machine has booted since
	}
	if id.Boot == 0 || id.PIDNS != self.PIDNS {
		return Alive, true // not to be seen from here
	}
	return Alive, false
}
