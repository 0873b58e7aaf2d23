//go:build linux

package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fifoPriority is the lowest one of SCHED_FIFO: above every normal thread,
// below whatever else is real-time on the machine.
const fifoPriority = 1

// timerSlack is how late the kernel may end a timed sleep of a hurried thread,
// in nanoseconds; the default is 50 microseconds.
const timerSlack = 1000

// shortSlice is how long a hurried thread asks to run at a turn, in nanoseconds:
// the least there is. It gets no more time for that, but its turn comes sooner:
// of those that wait for a processor the scheduler takes the one whose slice
// would be over first (Linux 6.12; earlier kernels ignore it).
const shortSlice = 100_000

// HurryThread changes how the calling thread is scheduled; the caller has locked
// its goroutine to it. The timers of the thread become exact and its turns come
// soon in any case, which needs no permission; the error says that the pace was
// not permitted.
func HurryThread(p Pace) (h Hurry, err error) {
	h.thread = unix.Gettid()
	h.exact = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0) == nil
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return h, fmt.Errorf("look up how a thread is scheduled: %w", err)
	}
	if before.Policy == unix.SCHED_NORMAL {
		short := *before
		short.Size, short.Runtime = unix.SizeofSchedAttr, shortSlice
		if unix.SchedSetAttr(0, &short, 0) == nil {
			h.before = before
		}
	}
	switch p {
	case PaceNice:
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, -20); err != nil {
			return h, fmt.Errorf("set nice -20 for a thread: %w", err)
		}
		h.before = before
	case PaceFIFO:
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: fifoPriority, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0); err != nil {
			return h, fmt.Errorf("set SCHED_FIFO for a thread: %w", err)
		}
		h.before = before
	}
	return h, nil
}

// Hurry is what HurryThread has changed.
type Hurry struct {
	thread int
	exact  bool
	before *unix.SchedAttr // nil: as it was
}

// Round gives the thread its own timers back; called on it.
func (h Hurry) Round() {
	if h.exact {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
	}
}

// Slow sets back how the thread is scheduled; called on any thread of the
// process, while that one exists.
func (h Hurry) Slow() {
	if h.before != nil {
		_ = unix.SchedSetAttr(h.thread, h.before, 0)
	}
}

// OnMainThread reports whether the caller runs on the thread with which the
// process began. It means something while the goroutine is locked to it.
func OnMainThread() bool { return unix.Gettid() == unix.Getpid() }
