package coord

import (
	"testing"
	"time"
)

// TestJudge walks every combination of what the beat goroutine can find and
// holds the answer against the rules, one by one.
func TestJudge(t *testing.T) {
	bools := []bool{false, true}
	n := 0
	for _, ph := range []phase{phaseClaimed, phaseLeading, phaseOver} {
		for bits := range 1 << 7 {
			on := func(i int) bool { return bits>>i&1 == 1 }
			s := sight{
				phase: ph, owner: on(0), segmentGone: on(1), closed: on(2), resign: on(3), stalled: on(4),
				draining: on(5), progressLimit: time.Second, drainLimit: time.Second,
			}
			for _, late := range bools {
				s.still, s.drained = 0, 0
				if on(6) {
					s.still = 2 * time.Second
				}
				if late {
					s.drained = 2 * time.Second
				}
				n++
				o := judge(s)
				if o.beat && (!s.owner || s.segmentGone) {
					t.Errorf("%+v: beats without the lease", s)
				}
				if o.beat && s.stalled && ph != phaseOver {
					t.Errorf("%+v: beats although it hangs", s)
				}
				if ph == phaseOver {
					if o.cancel != nil || o.exit {
						t.Errorf("%+v: judged after lead returned", s)
					}
					continue
				}
				if o.exit != (s.draining && late) {
					t.Errorf("%+v: exit %v", s, o.exit)
				}
				healthy := s.owner && !s.segmentGone && !s.closed && !s.resign && !s.stalled &&
					!(ph == phaseLeading && !s.draining && on(6))
				if (o.cancel == nil) != healthy {
					t.Errorf("%+v: cancel %v", s, o.cancel)
				}
				if healthy && !o.beat {
					t.Errorf("%+v: a healthy owner does not beat", s)
				}
				if s.owner && !s.segmentGone && !s.stalled && (s.closed || s.resign) && s.draining && !o.beat {
					t.Errorf("%+v: does not beat while it drains", s)
				}
			}
		}
	}
	if n != 3*128*2 {
		t.Fatalf("walked %d cases", n)
	}
}

func TestJudgeWithoutLimits(t *testing.T) {
	s := sight{phase: phaseLeading, owner: true, still: time.Hour}
	if o := judge(s); !o.beat || o.cancel != nil {
		t.Errorf("no progress limit: %+v", o)
	}
	s = sight{phase: phaseLeading, draining: true, drained: time.Hour}
	if o := judge(s); o.exit {
		t.Error("no drain limit: exits")
	}
}
