//go:build linux

package coord_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

func TestKilledLeaderIsReplaced(t *testing.T) {
	for _, proof := range []uint8{shm.ProofGone, shm.ProofExiting} {
		t.Run(fmt.Sprintf("proof %d", proof), func(t *testing.T) {
			s := newStage(t, func(p *shm.Params) { p.Proof = proof; p.Grace = 1000 }) // not by staleness
			if proof == shm.ProofExiting {
				s.lock = "" // its files may be open a moment longer
			}
			leader, standby := s.enterPair("")
			leader.signal(syscall.SIGKILL)
			if term := standby.expect("lead "); term != "2" {
				t.Errorf("the standby leads in term %s, want 2", term)
			}
			r, ok := s.elec.Entry(2)
			if !ok || r.Reason != role.ReasonCrash || r.PreviousPID != uint32(leader.cmd.Process.Pid) {
				t.Errorf("ring: %+v", r)
			}
			if e, _ := s.elec.Entry(1); proof == shm.ProofGone && (e.EndedAt == 0 || e.EndedAt > r.ClaimedAt) {
				t.Errorf("the end of term 1 is stamped %d, the claim %d", e.EndedAt, r.ClaimedAt)
			}
		})
	}
}

func TestStoppedLeaderIsFencedByItsEnd(t *testing.T) {
	s := newStage(t, nil)
	leader, standby := s.enterPair("")
	leader.signal(syscall.SIGSTOP)
	if term := standby.expect("lead "); term != "2" {
		t.Errorf("the standby leads in term %s, want 2", term)
	}
	if st := leader.status(); !st.Signaled() || st.Signal() != syscall.SIGKILL {
		t.Errorf("the stopped leader ended with %v, want SIGKILL", st)
	}
	if r, _ := s.elec.Entry(2); r.Reason != role.ReasonHang {
		t.Errorf("reason %q, want hang", r.Reason)
	}
}

func TestStoppedLeaderIsFencedByItsToken(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.Fence = shm.FenceToken })
	leader, standby := s.enterPair("")
	leader.signal(syscall.SIGSTOP)
	if term := standby.expect("lead "); term != "2" {
		t.Errorf("the standby leads in term %s, want 2", term)
	}
	leader.order("check")
	leader.signal(syscall.SIGCONT)
	if c := leader.expect("check "); !strings.Contains(c, "fenced") {
		t.Errorf("the woken leader's check: %s", c)
	}
	leader.expect("returns")
	s.racing(leader)
	standby.signal(syscall.SIGKILL)
	if term := leader.expect("lead "); term != "3" {
		t.Errorf("it leads again in term %s, want 3", term)
	}
}

func TestDrainIsNeverCutShort(t *testing.T) {
	s := newStage(t, nil)
	leader, standby := s.enterPair("ignore")
	s.resign()
	if c := leader.expect("cause "); c != coord.ErrAskedToResign.Error() {
		t.Errorf("cause %q", c)
	}
	if c := leader.expect("check "); c != "<nil>" {
		t.Errorf("check while draining: %s", c)
	}
	s.epochs(3 * s.seg.Params().Grace)
	if pid, term := s.elec.Owner(); pid != uint32(leader.cmd.Process.Pid) || term != 1 {
		t.Fatalf("while the leader drains, pid %d owns term %d", pid, term)
	}
	if strings.Contains(standby.said(), "lead") {
		t.Fatal("the standby leads while the leader drains")
	}
	leader.order("return")
	standby.expect("lead 2")
	if r, _ := s.elec.Entry(1); r.RetiredAt == 0 {
		t.Error("the drained leader has not retired")
	}
}

func TestDrainLimitEndsTheProcess(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.DrainLimit = 100 * time.Millisecond })
	leader, standby := s.enterPair("ignore")
	s.resign()
	if st := leader.status(); st.ExitStatus() != coord.ExitStatus {
		t.Errorf("exit status %d, want %d", st.ExitStatus(), coord.ExitStatus)
	}
	if !strings.Contains(leader.said(), "kv-0: lead has not returned 100ms after") {
		t.Error("it does not say why")
	}
	standby.expect("lead 2")
}

func TestContextEndDrains(t *testing.T) {
	s := newStage(t, nil)
	leader, standby := s.enterPair("")
	leader.signal(syscall.SIGTERM)
	leader.expect("cause ")
	leader.expect("returns")
	if r := leader.expect("run "); r != "<nil>" {
		t.Errorf("Run returned %s", r)
	}
	if st := leader.status(); st.ExitStatus() != 0 {
		t.Errorf("exit status %d", st.ExitStatus())
	}
	standby.expect("lead 2")
	if r, _ := s.elec.Entry(2); r.Reason != role.ReasonStepDown {
		t.Errorf("reason %q, want step-down", r.Reason)
	}
	if _, ok := s.member(leader); ok {
		t.Error("it has not left its seat")
	}
}

func TestHowLeadEnds(t *testing.T) {
	for order, want := range map[string]string{
		"return": "in the race", "error": "in the race", "resign": "in the race", "goexit": "in the race", "panic": "dead",
	} {
		t.Run(order, func(t *testing.T) {
			s := newStage(t, nil)
			leader, standby := s.enterPair("")
			leader.order(order)
			if want == "dead" {
				standby.expect("lead 2")
				if st := leader.status(); st.ExitStatus() != 2 || !strings.Contains(leader.said(), "as ordered") {
					t.Errorf("status %v after a panic", st)
				}
				return
			}
			term := 2
			for ; s.leads(term, leader, standby) == leader; term++ {
				leader.order(order) // its pause was over before the standby had a processor
			}
			s.racing(leader)
			standby.signal(syscall.SIGKILL)
			leader.expect(fmt.Sprintf("lead %d", term+1))
		})
	}
}

// A lone member that resigns leads again, in a new term.
func TestAloneItLeadsAgain(t *testing.T) {
	s := newStage(t, nil)
	a := s.enter("")
	a.expect("lead 1")
	a.order("return")
	a.expect("lead 2")
	a.order("error")
	a.expect("lead 3")
}

func TestNoProgressIsAHang(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.ProgressLimit = 200 * time.Millisecond })
	leader, standby := s.enterPair("pulse")
	s.watched(leader)
	s.epochs(60)
	if _, term := s.elec.Owner(); term != 1 {
		t.Fatalf("a leader that pulses was replaced: term %d", term)
	}
	leader.order("stall")
	if c := leader.expect("cause "); c != coord.ErrStalled.Error() {
		t.Errorf("cause %q", c)
	}
	if s.leads(2, leader, standby) == standby {
		s.racing(leader)
	}
}

// A lead that neither moves nor returns is taken by staleness and fenced.
func TestWedgedLeaderIsKilled(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.ProgressLimit = 200 * time.Millisecond })
	leader, standby := s.enterPair("pulse,ignore")
	s.watched(leader)
	leader.order("stall")
	standby.expect("lead 2")
	if st := leader.status(); !st.Signaled() || st.Signal() != syscall.SIGKILL {
		t.Errorf("the wedged leader ended with %v, want SIGKILL", st)
	}
}

func TestClosedRole(t *testing.T) {
	s := newStage(t, nil)
	leader, standby := s.enterPair("")
	s.elec.SetControl(election.Control{State: election.ControlClosed, Nominee: -1})
	if c := leader.expect("cause "); c != coord.ErrRoleClosed.Error() {
		t.Errorf("cause %q", c)
	}
	leader.expect("returns")
	s.until("the lease is released", func() bool { pid, _ := s.elec.Owner(); return pid == 0 })
	s.epochs(2 * s.seg.Params().Grace)
	if pid, term := s.elec.Owner(); pid != 0 || term != 1 {
		t.Fatalf("pid %d claimed term %d in a closed role", pid, term)
	}
	for _, a := range []*actor{leader, standby} {
		if _, ok := s.member(a); !ok {
			t.Errorf("%s has left a closed role by itself", a.name)
		}
	}
	s.elec.SetControl(election.Control{Nominee: -1})
	s.until("somebody leads again", func() bool { pid, term := s.elec.Active(); return pid != 0 && term == 2 })
}

func TestPausedRole(t *testing.T) {
	s := newStage(t, nil)
	leader, standby := s.enterPair("")
	s.elec.SetControl(election.Control{State: election.ControlPaused, Nominee: -1})
	leader.signal(syscall.SIGKILL)
	leader.status()
	s.epochs(2 * s.seg.Params().Grace)
	if _, term := s.elec.Owner(); term != 1 {
		t.Fatalf("term %d was claimed in a paused role", term)
	}
	s.elec.SetControl(election.Control{Nominee: -1})
	standby.expect("lead 2")
}

func TestGate(t *testing.T) {
	s := newStage(t, nil)
	s.elec.SetControl(election.Control{Gate: true, Nominee: -1})
	first := s.enter("")
	s.until("the first claims", func() bool { _, term := s.elec.Owner(); return term == 1 })
	s.epochs(2 * s.seg.Params().Grace)
	if pid, _ := s.elec.Active(); pid != 0 {
		t.Fatal("it leads without a grant")
	}
	s.elec.SetControl(election.Control{Gate: true, Nominee: -1, GrantedTerm: 1})
	first.expect("lead 1")

	second := s.enter("")
	s.racing(second)
	first.signal(syscall.SIGKILL)
	s.until("the second claims", func() bool { _, term := s.elec.Owner(); return term == 2 })
	// A veto: the term is to be given up, and is, without having led.
	s.elec.SetControl(election.Control{Gate: true, Nominee: -1, GrantedTerm: 1, ResignTerm: 2})
	s.until("it claims again", func() bool { pid, term := s.elec.Owner(); return pid != 0 && term == 3 })
	s.elec.SetControl(election.Control{Gate: true, Nominee: -1, GrantedTerm: 3})
	second.expect("lead 3")
	if strings.Contains(second.said(), "lead 2") {
		t.Error("it led the vetoed term")
	}
}

func TestNoFailoverNeverLeads(t *testing.T) {
	s := newStage(t, nil)
	leader := s.enter("")
	leader.expect("lead 1")
	never := s.enter("", "STANDBYD_NOFAILOVER=1", "STANDBYD_PRIORITY=9")
	s.until("the exempt one is ready", func() bool { m, ok := s.member(never); return ok && m.Ready })
	leader.signal(syscall.SIGKILL)
	leader.status()
	s.epochs(2 * s.seg.Params().Grace)
	if _, term := s.elec.Owner(); term != 1 {
		t.Fatalf("term %d was claimed by a member that may not fail over", term)
	}
	s.enter("").expect("lead 2")
}

// A ready candidate of higher priority takes over from a healthy leader, which
// may drain before the other one leads.
func TestPriorityPreempts(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.Preempt = shm.PreemptPriority; p.Grace = 10 })
	low := s.enter("ignore")
	low.expect("lead 1")
	high := s.enter("", "STANDBYD_PRIORITY=1")
	if c := low.expect("cause "); c != coord.ErrLost.Error() {
		t.Errorf("cause %q", c)
	}
	s.epochs(2 * s.seg.Params().Grace)
	if strings.Contains(high.said(), "lead") {
		t.Fatal("it leads while the other drains")
	}
	low.order("return")
	high.expect("lead 2")
	s.racing(low)
	if r, _ := s.elec.Entry(2); r.Reason != role.ReasonPreempt {
		t.Errorf("reason %q", r.Reason)
	}
}

// TestTwoHundredTransitions: nobody leaves the race after a loss.
func TestTwoHundredTransitions(t *testing.T) {
	s := newStage(t, nil)
	actors := []*actor{s.enter(""), s.enter(""), s.enter("")}
	byPID := map[uint32]*actor{}
	for _, a := range actors {
		byPID[uint32(a.cmd.Process.Pid)] = a
	}
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	led := map[*actor]int{}
	for n := 1; n <= rounds; n++ {
		want := uint64(n)
		s.until(fmt.Sprintf("term %d is led", n), func() bool { pid, term := s.elec.Active(); return pid != 0 && term == want })
		pid, _ := s.elec.Active()
		led[byPID[pid]]++
		s.resign()
	}
	s.racing2(actors)
	for _, a := range actors {
		if led[a] == 0 {
			t.Errorf("%s never led", a.name)
		}
	}
}

// racing2 waits until each of the actors leads or would.
func (s *stage) racing2(actors []*actor) {
	s.Helper()
	for _, a := range actors {
		s.until(a.name+" is in the race or leads", func() bool {
			m, ok := s.member(a)
			pid, _ := s.elec.Active()
			return ok && m.Ready && (m.Racing || pid == uint32(m.Identity.PID))
		})
	}
}

func TestRunOutsideStandbyd(t *testing.T) {
	err := coord.Run(context.Background(), nil)
	if !errors.Is(err, coord.ErrNotSupervised) {
		t.Errorf("Run: %v, want ErrNotSupervised", err)
	}
}
