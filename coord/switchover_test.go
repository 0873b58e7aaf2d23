//go:build linux

package coord_test

import (
	"strings"
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
			s.until("another leads again", func() bool { pid, term := s.elec.Active(); return pid != 0 && term == 3 })
			if strings.Contains(standby.said(), "lead 2") {
				t.Error("another than the nominee led in between")
			}
		})
	}
}

// The supervisor's word that a member goes last is in the seat that it was said
// of, and nowhere else.
func TestLastIsSaidOfOneMember(t *testing.T) {
	s := newStage(t, nil)
	leader, standby := s.enterPair("")
	m, _ := s.member(standby)
	pid := uint32(m.Identity.PID)
	s.table.SetLast(m.Seat, pid, true)
	s.table.SetLast(m.Seat, pid+1, false) // somebody else's
	if got, _ := s.member(standby); !got.Last {
		t.Errorf("%+v", got)
	}
	if got, _ := s.member(leader); got.Last {
		t.Errorf("%+v", got)
	}
	s.table.SetLast(m.Seat, pid, false)
	if got, _ := s.member(standby); got.Last || !got.Ready {
		t.Errorf("%+v", got)
	}
}
