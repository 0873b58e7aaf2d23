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

// HurryThread changes how the calling thread is scheduled, and returns what
// sets it back; that runs on the same thread, so the caller has locked its
// goroutine to it. The timers of the thread become exact in any case; the
// error says that the pace was not permitted.
func HurryThread(p Pace) (back func(), err error) {
	back = func() {}
	if unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0) == nil {
		back = func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }
	}
	slack := back
	switch p {
	case PaceNice:
		// getpriority(2) answers 20 less the nice value.
		before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
		}
		if err != nil {
			return back, fmt.Errorf("set nice -20 for a thread: %w", err)
		}
		back = func() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-before); slack() }
	case PaceFIFO:
		before, err := unix.SchedGetAttr(0, 0)
		if err == nil {
			err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: fifoPriority, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
		}
		if err != nil {
			return back, fmt.Errorf("set SCHED_FIFO for a thread: %w", err)
		}
		back = func() { _ = unix.SchedSetAttr(0, before, 0); slack() }
	}
	return back, nil
}

// OnMainThread reports whether the caller runs on the thread with which the
// process began. It means something while the goroutine is locked to it.
func OnMainThread() bool { return unix.Gettid() == unix.Getpid() }
