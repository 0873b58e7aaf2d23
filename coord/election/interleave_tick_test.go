//go:build interleave

package election

import "testing"

// R9: tickers stop wherever they like, and never make the epoch run.
func TestInterleaveTicks(t *testing.T) {
	k := walk{preemptions: every}
	k.none(t, func(w *world) {
		w.timed = true
		w.seg.TickedAt.Store(0)
		w.add(81, ticks(2, (*Election).Tick))
		w.add(82, ticks(2, (*Election).Tick))
		w.add(90, passes(3)).free = true
	})
}

// R9: an owner that was behind, by no more than grace, when the whole machine stood
// still is not condemned for the time in which nobody ran.
func TestInterleaveForgiveness(t *testing.T) {
	k := walk{preemptions: every, grace: 3}
	k.none(t, func(w *world) {
		w.timed, w.still = true, true
		w.clock = 3 * int64(w.seg.Tick())
		w.seg.TickedAt.Store(uint64(w.clock))
		w.owns(w.add(1, hangs))
		w.seg.Epoch.Store(3)
		w.add(81, ticks(2, (*Election).Tick))
		w.add(82, ticks(2, (*Election).Tick))
		w.add(90, stands(5)).free = true
	})
}

// A tick that loads the epoch after ticked_at, and trusts the clock that its
// caller has read.
func tickByOldNews(e *Election, now int64) bool {
	s := e.seg
	pause(pointTickLast)
	last := s.TickedAt.Load()
	if elapsed := now - int64(last); elapsed >= 0 && elapsed < int64(s.Tick()) {
		return false
	}
	pause(pointTickEpoch)
	epoch := s.Epoch.Load()
	pause(pointTickTake)
	if !s.TickedAt.CompareAndSwap(last, uint64(now)) {
		return false
	}
	pause(pointTickAdvance)
	return s.Epoch.CompareAndSwap(epoch, epoch+1)
}

func TestInterleaveFindsATickByOldNews(t *testing.T) {
	k := walk{preemptions: every}
	k.some(t, func(w *world) {
		w.timed = true
		w.seg.TickedAt.Store(0)
		w.add(81, ticks(2, tickByOldNews))
		w.add(82, ticks(2, tickByOldNews))
		w.add(90, passes(3)).free = true
	})
}
