package coord

import (
	"sync/atomic"
	"time"
)

// progress counts signs that the work in this process moves. The zero value
// says that nobody counts.
type progress struct {
	pulses atomic.Uint64 // calls of Pulse
	idleAt atomic.Uint64 // pulses when Idle was called last; equal: idle, or never used
	checks atomic.Uint64 // passes of the function of WithCheck
}

// stillness measures for how long the sources of progress have been still.
// Only a pass of the beats uses it. The zero value is ready.
type stillness struct {
	term           uint64 // the leadership that is watched; a new one begins anew
	pulses, checks uint64 // as seen last
	noPulse        time.Duration
	noCheck        time.Duration
	lookedAt       int64 // CLOCK_MONOTONIC, ns
}

// look notes what moved and returns the longest stillness, 0 if nothing is
// watched. hung: the work is at a stand by order, so what looks idle is not. A gap between two looks counts at most longest: time in which this
// process did not run at all (stopped, or the machine paused) says nothing of
// its work.
func (s *stillness) look(p *progress, term uint64, checked, hung bool, nowMono int64, longest time.Duration) time.Duration {
	pulses, idleAt, checks := p.pulses.Load(), p.idleAt.Load(), p.checks.Load()
	if s.term != term {
		*s = stillness{term: term, pulses: pulses, checks: checks, lookedAt: nowMono}
	}
	gap := min(time.Duration(nowMono-s.lookedAt), longest)
	s.lookedAt = nowMono
	s.noPulse += gap
	if pulses != s.pulses || pulses == idleAt && (!hung || pulses == 0) {
		s.pulses, s.noPulse = pulses, 0
	}
	s.noCheck += gap
	if checks != s.checks || !checked {
		s.checks, s.noCheck = checks, 0
	}
	return max(s.noPulse, s.noCheck)
}

// runChecks is the check goroutine: it calls check while the member leads,
// several times within the progress limit, and never twice at once. A check
// that hangs simply brings no progress.
func (m *Member) runChecks(check func() error) {

	t := time.NewTicker(max(m.params.ProgressLimit/8, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-m.stopping:
			return
		case <-t.C:
			if l := m.current.Load(); l != nil && l.at() == phaseLeading && check() == nil && m.bars.Load()&barHang == 0 {
				m.progress.checks.Add(1)
			}
		}
	}
}

// Pulse says that the work moves: one atomic add, safe for concurrent use.
// After the first Pulse a leader that makes no further one for the progress
// limit of the segment's header counts as hung: its lead is cancelled with
// ErrStalled and it stops beating, so that another takes over. Work that waits
// for work calls Idle. Without a progress limit, Pulse has no effect.
func (m *Member) Pulse() {
	if m.bars.Load() != 0 {
		m.bar()
	}
	m.progress.pulses.Add(1)
}

// Idle says that there is nothing to do at present; it holds until the next
// Pulse, which it does not need to wait for. Safe for concurrent use.
func (m *Member) Idle() {
	if m.bars.Load() != 0 {
		m.bar()
	}
	m.progress.idleAt.Store(m.progress.pulses.Load())
}
