package supervisor

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// trial is what the first leader with new settings is on before the last worker
// with the old ones is replaced. To be ready is no proof that its lead works.
type trial struct {
	term   uint64 // of that leader, 0 if there is no trial now
	pid    uint32
	by     int64  // mono ns at which it has passed; 0: that time has come
	failed string // why one did not lead
	passed bool
}

// trialTime is how long a leader with new settings must have led. It is there
// for what fails at its first steps: a port, a file, a payload of another type.
const trialTime = 500 * time.Millisecond

// tryLeader begins a trial.
func (t *turn) tryLeader(term uint64, pid uint32) {
	t.s.roll.trial = trial{term: term, pid: pid, by: t.now.after(trialTime)}
}

// rolledOver follows the switchover of a rolling change: rec is that of the next
// leader, the zero one if there is none.
func (t *turn) rolledOver(c *changeState, rec Record) {
	r := t.s.roll
	switch {
	case r == nil || !c.rolled:
	case len(c.tried) > 0:
		r.trial.failed = fmt.Sprintf("%s, started with the %s settings, led, and gave the lease back at once", t.s.nameOf(c.tried[0]), r.which())
	case rec.Term != 0:
		t.tryLeader(rec.Term, uint32(rec.ToPID))
	}
}

// onTrial reports whether a rolling change has to wait for a trial, or has ended
// because of it.
func (t *turn) onTrial() bool {
	s := &t.s
	r := s.roll
	c := r.trial
	switch {
	case c.failed != "":
	case c.term == 0:
		return false
	case s.led.term == c.term && c.by != 0:
		return true
	case s.led.term == c.term:
		r.trial = trial{passed: true}
		return false
	default:
		why, known := s.ownEnd(c.term, c.pid)
		if !known {
			return true
		}
		if why == "" {
			r.trial = trial{}
			return false
		}
		c.failed = fmt.Sprintf("%s, started with the %s settings, led for less than %v: %s", s.nameOf(c.pid), r.which(), trialTime, why)
	}
	r.trial = trial{}
	t.goBack(fmt.Errorf("%s", c.failed))
	return true
}

// ownEnd is why a leadership has ended, if it was the leader's own doing; empty
// if somebody else has ended it. known is false while its process's end is.
func (s *state) ownEnd(term uint64, pid uint32) (why string, known bool) {
	i := s.indexOf(pid)
	switch {
	case i < 0 || s.control.resign >= term || s.ordered == term || s.spared == term || s.condemned == term || s.workers[i].drilled == int(pid):
		return "", true
	case s.living(pid) >= 0 && s.lastEnd.pid == int(pid): // it hangs, or has lost the lease
		return "", true
	case s.living(pid) >= 0:
		return "its lead returned", true
	}
	exit := s.workers[i].lastExit
	if exit == nil || exit.PID != int(pid) {
		return "", s.workers[i].pid != int(pid)
	}
	if exit.Signal != "" && !slices.Contains(ownSignals, signalByName(exit.Signal)) {
		return "", true
	}
	return describeExit(*exit), true
}

// ownSignals are those that a process brings on itself.
var ownSignals = []syscall.Signal{syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGSEGV}
