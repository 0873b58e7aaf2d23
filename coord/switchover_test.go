//go:build linux

package coord_test

import (
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/role"
)

// The leader is asked to resign in favour of the one that is last in the order,
// in an open, a paused and a held role: that one leads, and nobody in between.
func TestNomineeFollows(t *testing.T) {
	for _, state := range []election.ControlState{election.ControlOpen, election.ControlPaused, election.ControlHeld} {
		t.Run(state.String(), func(t *testing.T) {
			s := newStage(t, nil)
			leader, standby := s.enterPair("")
			last := s.enter("", "STANDBYD_NOFAILOVER=1", "STANDBYD_PRIORITY=-7")
			last.expect("warm")
			s.until("the last one is ready", func() bool { m, ok := s.member(last); return ok && m.Ready })
			m, _ := s.member(last)
			s.elec.SetControl(election.Control{State: state, Nominee: m.Seat, ResignTerm: 1, Planned: true})
			if c := leader.expect("cause "); c != coord.ErrAskedToResign.Error() {
				t.Errorf("cause %q", c)
			}
			last.expect("lead 2")
			if e, ok := s.elec.Entry(2); !ok || e.Reason != role.ReasonSwitchover {
				t.Errorf("ring: %+v", e)
			}
			s.elec.SetControl(election.Control{Nominee: -1})
			last.signal(syscall.SIGKILL)
			standby.expect("lead 3")
		})
	}
}

// A member that failed as leader lets all others go first, whatever its
// priority.
func TestLastOneGoesLast(t *testing.T) {
	s := newStage(t, nil)
	leader := s.enter("")
	leader.expect("lead 1")
	best := s.enter("", "STANDBYD_PRIORITY=9")
	other := s.enter("")
	s.racing(best, other)
	m, _ := s.member(best)
	s.table.SetLast(m.Seat, uint32(m.Identity.PID), true)
	if got, _ := s.member(best); !got.Last {
		t.Fatalf("%+v", got)
	}
	s.table.SetLast(m.Seat, uint32(m.Identity.PID)+1, false) // somebody else's
	leader.signal(syscall.SIGKILL)
	other.expect("lead 2")
	s.racing(best)
	s.table.SetLast(m.Seat, uint32(m.Identity.PID), false)
	other.signal(syscall.SIGKILL)
	best.expect("lead 3")
}
