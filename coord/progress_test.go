package coord

import (
	"testing"
	"time"
)

func TestStillness(t *testing.T) {
	const ms = int64(time.Millisecond)
	var (
		p   progress
		s   stillness
		now int64
	)
	look := func(checked bool, after int64) time.Duration {
		now += after * ms
		return s.look(&p, 7, checked, false, now, 200*time.Millisecond)
	}
	expect := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: still for %v, want %v", what, got, want)
		}
	}
	look(false, 0)
	expect("nobody counts", look(false, 100), 0)
	p.pulses.Add(1)
	expect("the first pulse", look(false, 100), 0)
	expect("none since", look(false, 100), 100*time.Millisecond)
	expect("none since", look(false, 50), 150*time.Millisecond)
	expect("a gap counts in part", look(false, 60_000), 350*time.Millisecond)
	p.idleAt.Store(p.pulses.Load())
	expect("idle", look(false, 100), 0)
	expect("still idle", look(false, 100), 0)
	p.pulses.Add(1)
	look(false, 100)
	expect("a pulse ends idleness", look(false, 100), 100*time.Millisecond)

	p.pulses.Add(1)
	look(true, 0)
	p.pulses.Add(1)
	expect("pulses do not stand in for the check", look(true, 100), 100*time.Millisecond)
	p.checks.Add(1)
	p.pulses.Add(1)
	expect("both moved", look(true, 100), 0)

	look(true, 150)
	expect("a new leadership begins anew", s.look(&p, 8, true, false, now, time.Second), 0)
}
