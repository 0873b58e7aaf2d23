//go:build linux

package coord_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

// needsRobust skips where the kernel, or a filter, has no robust futexes.
func needsRobust(t *testing.T, s *stage) {
	t.Helper()
	done := make(chan error)
	go func() {
		h, err := s.seg.HoldRobust(len(s.seg.Seats) - 1)
		if err == nil {
			h.Drop(true)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Skip(err)
	}
}

// Each way of noticing that the leader has ended is enough by itself: nothing
// is found by staleness here.
func TestEachWayIsEnough(t *testing.T) {
	for _, way := range []string{"robust", "pidfd", "tick", "robust,pidfd", "pidfd,tick"} {
		for _, p := range []struct {
			name         string
			fence, proof uint8
		}{
			{"process, gone", shm.FenceProcess, shm.ProofGone},
			{"process, exiting", shm.FenceProcess, shm.ProofExiting},
			{"token", shm.FenceToken, shm.ProofGone},
		} {
			t.Run(way+"; "+p.name, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, func(q *shm.Params) { q.Grace, q.Fence, q.Proof = 1<<20, p.fence, p.proof })
				if strings.Contains(way, "robust") {
					needsRobust(t, s)
				}
				s.lock = ""
				first := s.enter("") // all ways: what is noticed is its end
				first.expect("lead 1")
				others := []*actor{s.enter("", "STANDBYD_DETECT="+way), s.enter("", "STANDBYD_DETECT="+way)}
				s.racing(others...)
				first.signal(syscall.SIGKILL)
				s.until("a standby leads", func() bool { pid, term := s.elec.Active(); return pid != 0 && term == 2 })
				if r, _ := s.elec.Entry(2); r.Reason != role.ReasonCrash {
					t.Errorf("reason %q", r.Reason)
				}
			})
		}
	}
}

// Where the leader has no robust words, the others go on without.
func TestALeaderWithoutRobustWords(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.Grace = 1 << 20 })
	first := s.enter("", "STANDBYD_DETECT=tick")
	first.expect("lead 1")
	if m, _ := s.member(first); m.Robust != 0 || m.Ways != 0 {
		t.Fatalf("its seat shows thread %d and ways %b", m.Robust, m.Ways)
	}
	second := s.enter("")
	s.racing(second)
	first.signal(syscall.SIGKILL)
	second.expect("lead 2")
}

// A wrong word is an error that says what is allowed.
func TestDetectIsChecked(t *testing.T) {
	s := newStage(t, nil)
	a := s.enter("", "STANDBYD_DETECT=robust,smell")
	if said := a.expect("run "); !strings.Contains(said, "STANDBYD_DETECT") || !strings.Contains(said, "robust, pidfd and tick") {
		t.Error(said)
	}
}

// The seat shows what the member has, and the thread whose end is noticed is
// one of its own, and not the main one.
func TestSeatShowsTheWays(t *testing.T) {
	s := newStage(t, nil)
	needsRobust(t, s)
	a := s.enter("")
	a.expect("lead 1")
	m, _ := s.member(a)
	if m.Ways&(shm.WayRobust|shm.WayPidfd) != shm.WayRobust|shm.WayPidfd {
		t.Errorf("ways %b", m.Ways)
	}
	pid := a.cmd.Process.Pid
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", pid, m.Robust)); err != nil || int(m.Robust) == pid {
		t.Errorf("robust thread %d of process %d: %v", m.Robust, pid, err)
	}
}

// armed waits until the end of leader's robust thread would fire standby's word,
// which it returns.
func (s *stage) armed(leader, standby *actor) *atomic.Uint32 {
	s.Helper()
	m, _ := s.member(leader)
	n, _ := s.member(standby)
	word := s.seg.RobustWord(m.Seat, n.Seat)
	s.until("the standby has armed its word", func() bool { return m.Robust == 0 || word.Load() == uint32(m.Robust)|shm.RobustWaiters })
	return word
}

// A member that leaves takes its robust words back, and leaves no thread.
func TestAMemberThatLeavesFiresNothing(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.Fence = shm.FenceToken })
	first, second := s.enterPair("")
	word := s.armed(first, second)
	first.signal(syscall.SIGTERM)
	first.status()
	if w := word.Load(); w&shm.RobustDied != 0 {
		t.Errorf("the word was fired: %#x", w)
	}
	second.expect("lead 2")
}

// claimant waits until one of two has the lease of term, and returns it first:
// the order of candidates binds nobody for longer than a fraction of a millisecond.
func (s *stage) claimant(term uint64, a, b *actor) (owner, other *actor) {
	s.Helper()
	var pid uint32
	s.until(fmt.Sprintf("term %d has an owner", term), func() bool {
		p, t := s.elec.Owner()
		pid = p
		return p != 0 && t == term
	})
	if int(pid) == b.cmd.Process.Pid {
		a, b = b, a
	}
	return a, b
}

// Two that die one after the other before anybody has fenced the first: the
// third fences both by finding them dead.
func TestChainOfPredecessors(t *testing.T) {
	for _, proof := range []uint8{shm.ProofGone, shm.ProofExiting} {
		t.Run(strconv.Itoa(int(proof)), func(t *testing.T) {
			s := newStage(t, func(p *shm.Params) { p.Grace = 1 << 20; p.Proof = proof })
			s.lock = ""
			a, b := s.enterPair("")
			c := s.enter("")
			s.racing(b, c)
			// The gate keeps the second from leading: it has the lease, and the
			// active word names the first.
			s.elec.SetControl(gateAt(1))
			a.signal(syscall.SIGKILL)
			b, c = s.claimant(2, b, c)
			if pid, term := s.elec.Active(); int(pid) != a.cmd.Process.Pid || term != 1 {
				t.Fatalf("the active word names %d/%d", pid, term)
			}
			b.signal(syscall.SIGKILL)
			s.until("the third has the lease", func() bool { pid, term := s.elec.Owner(); return int(pid) == c.cmd.Process.Pid && term == 3 })
			s.elec.SetControl(gateAt(3))
			c.expect("lead 3")
		})
	}
}

// The claimant's predecessor hangs, and the one between died: the stopped
// process is gone before the third leads.
func TestChainWithAStoppedOne(t *testing.T) {
	s := newStage(t, nil)
	a, b := s.enterPair("")
	c := s.enter("")
	s.racing(c)
	s.elec.SetControl(gateAt(1))
	a.signal(syscall.SIGSTOP)
	b, c = s.claimant(2, b, c)
	b.signal(syscall.SIGKILL)
	s.until("the third has the lease", func() bool { pid, term := s.elec.Owner(); return int(pid) == c.cmd.Process.Pid && term == 3 })
	s.elec.SetControl(gateAt(3))
	c.expect("lead 3")
	if st := a.status(); !st.Signaled() || st.Signal() != syscall.SIGKILL {
		t.Errorf("the stopped one ended with %v", st)
	}
}

// A leader that is a zombie, because nobody waits for it, is dead.
func TestZombieLeader(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.Grace = 1 << 20 })
	standby := s.enter("", "STANDBYD_NOFAILOVER=1")
	s.until("it is ready", func() bool { m, ok := s.member(standby); return ok && m.Ready })
	leader := s.enterUnreaped("")
	s.until("somebody leads", func() bool { pid, term := s.elec.Active(); return int(pid) == leader && term == 1 })
	next := s.enter("")
	s.racing(next)
	if err := syscall.Kill(leader, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	next.expect("lead 2")
}

// enterUnreaped starts a worker that nobody waits for before the test's end.
func (s *stage) enterUnreaped(habits string) int {
	s.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		s.Fatal(err)
	}
	defer null.Close()
	p, err := os.StartProcess(exe, []string{exe}, &os.ProcAttr{
		Env: append(os.Environ(), "COORD_PUPPET=puppet,"+habits, "STANDBYD_ROLE=kv", "STANDBYD_WORKER=kv-z", "STANDBYD_INDEX=50",
			"STANDBYD_SEGMENT="+s.seg.Path()),
		Files: []*os.File{null, null, null},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { p.Kill(); p.Wait() })
	return p.Pid
}

// Waiting for the predecessor's memory works where the proof is that it is
// exiting; a lead that asks is answered when the process is gone.
func TestPredecessorGoneUnderExiting(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.Proof = shm.ProofExiting; p.Grace = 1 << 20 })
	leader := s.enter("")
	leader.expect("lead 1")
	standby := s.enter("gone") // takes the lock only after Gone
	s.racing(standby)
	leader.signal(syscall.SIGKILL)
	standby.expect("gone <nil>")
	standby.expect("lead 2")
	if strings.Contains(standby.said(), "BROKEN") {
		t.Error("the predecessor's lock was still held")
	}
}

// A leader whose threads end goes on leading: the one whose end is a hint is
// not among them.
func TestThreadsThatEndAreNoHint(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.Fence = shm.FenceToken; p.Grace = 1 << 20 })
	needsRobust(t, s)
	leader, standby := s.enterPair("")
	word := s.armed(leader, standby)
	for range 5 {
		leader.order("threads")
		leader.expect("threads ended")
	}
	s.epochs(10)
	if m, _ := s.member(leader); word.Load() != uint32(m.Robust)|shm.RobustWaiters {
		t.Errorf("the standby's word is %#x, thread %d", word.Load(), m.Robust)
	}
	if _, term := s.elec.Owner(); term != 1 {
		t.Errorf("term %d was claimed from a leader that lives", term)
	}
}

// An execve fires the words of a process that lives. Where a process is to be
// fenced, that proves nothing: only its missing beats count.
func TestExecIsNoDeath(t *testing.T) {
	if _, err := os.Stat("/bin/sleep"); err != nil {
		t.Skip(err)
	}
	s := newStage(t, func(p *shm.Params) { p.Grace = 100 })
	leader, standby := s.enterPair("")
	m, _ := s.member(leader)
	word := s.armed(leader, standby)
	began := s.elec.Epoch()
	leader.order("exec")
	standby.expect("lead 2")
	if r, _ := s.elec.Entry(2); r.Reason != role.ReasonHang || s.elec.Epoch()-began < 100 {
		t.Errorf("taken after %d epochs, for the reason %q", s.elec.Epoch()-began, r.Reason)
	}
	if m.Robust != 0 && word.Load()&shm.RobustDied == 0 {
		t.Errorf("the execve did not fire the word: %#x", word.Load())
	}
	if st := leader.status(); !st.Signaled() || st.Signal() != syscall.SIGKILL {
		t.Errorf("the process was not fenced: %v", st)
	}
}
