package coord_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
)

// A hang by order: the process beats and its work does not move, until the
// progress limit gives the lease to another, whose fence ends the process.
func TestOrderedHangIsFoundByTheProgressLimit(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.ProgressLimit = 300 * time.Millisecond })
	leader, standby := s.enterPair("pulse")
	s.watched(leader)
	if m, ok := s.member(standby); !ok || m.Watched {
		t.Errorf("the standby, which has not pulsed: %+v", m)
	}
	s.elec.OrderFault(1, election.FaultHang)
	standby.expect("lead 2")
	if st := leader.status(); !st.Signaled() || st.Signal() != syscall.SIGKILL {
		t.Errorf("the hung leader ended with %v, want SIGKILL", st)
	}
	// The order was of term 1: the next leader does not obey it.
	s.epochs(60)
	if _, term := s.elec.Owner(); term != 2 {
		t.Errorf("term %d: the order hit another leader", term)
	}
}

// With nobody to kill it, the drain limit ends a process that hangs.
func TestOrderedHangUnderTheTokenFence(t *testing.T) {
	s := newStage(t, func(p *shm.Params) {
		p.ProgressLimit, p.DrainLimit, p.Fence = 300*time.Millisecond, time.Second, shm.FenceToken
	})
	leader, standby := s.enterPair("pulse")
	s.watched(leader)
	s.elec.OrderFault(1, election.FaultHang)
	standby.expect("lead 2")
	if st := leader.status(); st.ExitStatus() != coord.ExitStatus {
		t.Errorf("the hung leader ended with %v, want status %d", st, coord.ExitStatus)
	}
}

func TestOrderedExit(t *testing.T) {
	s := newStage(t, nil)
	leader, standby := s.enterPair("")
	s.elec.OrderFault(7, election.FaultExit)
	s.elec.OrderFault(1, election.Fault(99))
	s.epochs(20)
	if _, term := s.elec.Owner(); term != 1 {
		t.Fatalf("orders for another term, or unknown ones, were obeyed: term %d", term)
	}
	s.elec.OrderFault(1, election.FaultExit)
	standby.expect("lead 2")
	if st := leader.status(); st.ExitStatus() != coord.DrillStatus {
		t.Errorf("the leader ended with %v, want status %d", st, coord.DrillStatus)
	}
}
