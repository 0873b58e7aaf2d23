//go:build linux

package coord_test

import (
	"syscall"
	"testing"
)

// A member that was launched to be admitted does not contend, however ready it
// is, until the supervisor says so; from then on it is as any other.
func TestUnadmittedDoesNotContend(t *testing.T) {
	s := newStage(t, nil)
	a := s.enter("", "STANDBYD_ADMISSION=1")
	s.until("it is ready", func() bool { m, ok := s.member(a); return ok && m.Ready })
	s.epochs(2 * s.seg.Params().Grace)
	if pid, term := s.elec.Owner(); pid != 0 || term != 0 {
		t.Fatalf("pid %d claimed term %d before it was admitted", pid, term)
	}
	m, _ := s.member(a)
	if !m.Unadmitted || m.Racing {
		t.Fatalf("its row: %+v", m)
	}
	s.table.Admit(m.Seat, uint32(m.Identity.PID)+1)
	if m, _ := s.member(a); !m.Unadmitted {
		t.Fatal("admitted by another's pid")
	}
	s.table.Admit(m.Seat, uint32(m.Identity.PID))
	a.expect("lead 1")

	b := s.enter("")
	s.racing(b)
	a.signal(syscall.SIGKILL)
	b.expect("lead 2")
}
