//go:build linux

package coord_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

// TestStandbysBehindOthersBeatLess waits for a stretch of epochs in which the
// machine has let everybody run.
func TestStandbysBehindOthersBeatLess(t *testing.T) {
	const stretch = 40
	s := newStage(t, func(p *shm.Params) { p.Grace = 20 })
	leader := s.enter("")
	leader.expect("lead ")
	first := s.enter("")
	s.racing(first)
	second, last := s.enter(""), s.enter("")
	s.racing(second, last)
	seen := func(a *actor, last *uint64) (n int) {
		if m, ok := s.member(a); ok && m.BeatEpoch != *last {
			*last, n = m.BeatEpoch, 1
		}
		return n
	}
	var begin, of1, ofN uint64
	var beats1, beatsN int
	s.until("the first candidate beats at each tick, and the last one does not", func() bool {
		if e := s.elec.Epoch(); e-begin >= stretch {
			if begin != 0 && beats1 >= stretch*3/4 && beatsN >= 1 && beatsN <= stretch/4 {
				return true
			}
			begin, beats1, beatsN = e, 0, 0
		}
		beats1 += seen(first, &of1)
		beatsN += seen(last, &ofN)
		return false
	})
}

// TestBeatsWakeOneThread counts how often threads of the first candidate fall
// asleep, in a stretch of epochs in which the machine has let everybody run. With
// a timer of its thread it is five or six times in each epoch, for the runtime's
// monitor wakes up as well.
func TestBeatsWakeOneThread(t *testing.T) {
	const stretch = 30
	s := newStage(t, func(p *shm.Params) { p.Tick, p.Grace = 50*time.Millisecond, 20 })
	leader := s.enter("")
	leader.expect("lead ")
	first := s.enter("")
	s.racing(first)
	sleeps := func() (n int) {
		paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", first.cmd.Process.Pid))
		for _, path := range paths {
			text, _ := os.ReadFile(path)
			_, after, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
			var of int
			fmt.Sscan(after, &of)
			n += of
		}
		return n
	}
	var begin, last uint64
	var beats, before int
	s.until("the first candidate beats at each tick, and hardly any thread wakes besides", func() bool {
		e := s.elec.Epoch()
		if e-begin >= stretch {
			slept := sleeps() - before
			t.Logf("%d beats in %d epochs, threads slept %d times", beats, e-begin, slept)
			if begin != 0 && beats >= stretch*3/4 && slept <= stretch*3 {
				return true
			}
			begin, beats, before = e, 0, sleeps()
		}
		if m, ok := s.member(first); ok && m.BeatEpoch != last {
			last = m.BeatEpoch
			beats++
		}
		return false
	})
}

// TestLeaderThatDrainsHardBeats: the work of a process with one processor is told
// at an alarm to end, and computes for many graces before it does.
func TestLeaderThatDrainsHardBeats(t *testing.T) {
	s := newStage(t, func(p *shm.Params) { p.Tick, p.Grace = 50*time.Millisecond, 8 })
	leader := s.enter("spin", "GOMAXPROCS=1")
	leader.expect("lead ")
	standby := s.enter("")
	s.racing(standby)
	s.epochs(5)
	s.seg.Control.Resign.Store(1) // and nobody is woken for it
	leader.expect("returns")
	standby.expect("lead ")
	if r, _ := s.elec.Entry(2); r.Reason != role.ReasonStepDown {
		t.Errorf("term 2 was taken because of %q, want %q", r.Reason, role.ReasonStepDown)
	}
}

// TestLastOfTheOrder takes over when all before it are gone at once, or are
// stopped, and nobody but it is there to tick.
func TestLastOfTheOrder(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(sig.String(), func(t *testing.T) {
			s := newStage(t, func(p *shm.Params) { p.Grace = 10; p.Fence = shm.FenceToken })
			leader := s.enter("")
			leader.expect("lead ")
			var before []*actor
			for range 3 {
				a := s.enter("")
				s.racing(a)
				before = append(before, a)
			}
			last := s.enter("")
			s.racing(last)
			s.epochs(20)
			for _, a := range append(before, leader) {
				a.signal(sig)
			}
			if term := last.expect("lead "); term != "2" {
				t.Errorf("the last one leads in term %s, want 2", term)
			}
			if r, _ := s.elec.Entry(2); sig == syscall.SIGSTOP && r.Reason != role.ReasonHang {
				t.Errorf("reason %q, want %q", r.Reason, role.ReasonHang)
			}
		})
	}
}
