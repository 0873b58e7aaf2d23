//go:build linux

package coord_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
)

// marked is what the puppet's "mark" leaves in flight.
const marked = "0x8000000000000008"

// However a leader ends in the middle of its work, the next one learns which.
func TestTheNextLeaderLearnsWhatWasInFlight(t *testing.T) {
	ends := map[string]func(s *stage, leader *actor){
		"killed": func(_ *stage, leader *actor) { leader.signal(syscall.SIGKILL) },
		"hung":   func(_ *stage, leader *actor) { leader.signal(syscall.SIGSTOP) },
		"panic":  func(_ *stage, leader *actor) { leader.order("panic") },
		"drains": func(s *stage, _ *actor) { s.resign() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			leader, standby := s.enterPair("")
			if b := leader.expect("before "); b != "0x0" {
				t.Errorf("before the first leader: %s", b)
			}
			leader.order("mark")
			leader.expect("marked")
			end(s, leader)
			standby.expect("lead 2")
			if b := standby.expect("before "); b != marked {
				t.Errorf("in flight: %s, want %s", b, marked)
			}
			if e, _ := s.elec.Entry(1); e.InFlight != 1<<63|1<<3 {
				t.Errorf("the ring says %#x", e.InFlight)
			}
		})
	}
}

// The dead leader's seat is given to another before anybody claims: what it
// had in flight was kept when the active word was cleared.
func TestWorkInFlightOutlastsItsSeat(t *testing.T) {
	s := newStage(t, nil)
	leader, _ := s.enterPair("")
	leader.order("mark")
	leader.expect("marked")
	was, _ := s.member(leader)
	s.elec.SetControl(election.Control{State: election.ControlPaused, Nominee: -1})
	leader.signal(syscall.SIGKILL)
	leader.status()
	dead := func(pid uint32) bool { return pid == uint32(was.Identity.PID) }
	s.elec.Evict(dead)
	if _, ok := s.elec.Bury(dead); !ok {
		t.Fatal("the active word was not cleared")
	}
	heir := s.enter("")
	s.racing(heir)
	if m, _ := s.member(heir); m.Seat != was.Seat {
		t.Fatalf("seat %d was not taken over, but %d", was.Seat, m.Seat)
	}
	s.elec.SetControl(election.Control{Nominee: -1})
	s.until("somebody leads", func() bool { pid, term := s.elec.Active(); return pid != 0 && term == 2 })
	if e, _ := s.elec.Entry(1); e.InFlight != 1<<63|1<<3 {
		t.Errorf("the ring says %#x", e.InFlight)
	}
}

func TestMarksOfAClosedMemberAreIgnored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	m, err := coord.JoinFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	seg, err := shm.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	m.Mark(2)
	m.Mark(64)
	if w := seg.Seats[1].InFlight.Load(); w != 1<<2 {
		t.Errorf("in flight %#x", w)
	}
	if n := testing.AllocsPerRun(100, func() { m.Mark(1); m.Clear(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	m.Close()
	m.Mark(5)
	m.Clear(2)
	if w := seg.Seats[1].InFlight.Load(); w != 1<<2 {
		t.Errorf("in flight %#x after Close", w)
	}
}
