package supervisor

import (
	"slices"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/coord/shm"
)

func seated(ways ...uint64) state {
	p := testPolicy()
	s := newState(p, 0)
	for i, w := range ways {
		s.workers[i].pid = 100 + i
		s.seats = append(s.seats, seatView{seat: i + 1, pid: uint32(100 + i), ready: true, ways: w})
	}
	return s
}

func TestProtectionIsWhatTheWorkersHave(t *testing.T) {
	both := shm.WayRobust | shm.WayPidfd
	for _, c := range []struct {
		ways    []uint64
		detect  string
		missing string
	}{
		{[]uint64{both, both}, "robust pidfd tick", ""},
		{[]uint64{both, shm.WayPidfd}, "robust pidfd tick", "robust futexes in NAME-1"},
		{[]uint64{shm.WayPidfd, shm.WayPidfd}, "pidfd tick", "robust futexes"},
		{[]uint64{0, 0}, "tick", "robust futexes; pidfd"},
	} {
		s := seated(c.ways...)
		p := s.protection()
		missing := slices.DeleteFunc(p.Missing, func(m string) bool { return m == "launch stage" })
		want := strings.ReplaceAll(c.missing, "NAME", s.policy.Name)
		if strings.Join(p.Detect, " ") != c.detect || strings.Join(missing, "; ") != want {
			t.Errorf("ways %v: detect %v, missing %v", c.ways, p.Detect, p.Missing)
		}
	}
}

func TestPaceThatIsNotPermittedIsSaidOnce(t *testing.T) {
	s := seated(shm.WayRobust|shm.WayPidfd|shm.WayFIFO, shm.WayRobust|shm.WayPidfd)
	s.policy.Scheduling = SchedulingFIFO
	if m := s.protection().Missing; !slices.ContainsFunc(m, func(x string) bool { return x == "scheduling fifo in "+s.workers[1].name }) ||
		slices.ContainsFunc(m, func(x string) bool { return strings.Contains(x, s.workers[0].name) }) {
		t.Errorf("missing: %v", m)
	}
	said := func(turn *turn) (n int) {
		for _, e := range turn.out {
			if ev, ok := e.(doEmit); ok && ev.event.Type == EventWarning && strings.Contains(ev.event.Text, "RLIMIT_RTPRIO") {
				n++
			}
		}
		return n
	}
	first := &turn{s: s}
	first.watchPace()
	second := &turn{s: first.s}
	second.watchPace()
	if said(first) != 1 || said(second) != 0 {
		t.Errorf("said %d times at first, then %d times", said(first), said(second))
	}
}
