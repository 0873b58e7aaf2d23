package election

// Tick advances the epoch if a tick has passed since the last one, whoever
// made it; every member and the supervisor call it, so that no single stopped
// process freezes the epoch. It says whether it did. now is CLOCK_MONOTONIC in
// nanoseconds; a last tick that lies in the future counts as passed, because
// that clock restarts at boot.
//
// A gap longer than grace ticks means that nobody ran, the machine was paused,
// say: then the owner is forgiven for a whole grace, so that a pause of all is
// no failover.
//
// Whoever ticks judges the owner, and wakes the waiters if it is stale.
func (e *Election) Tick(now int64) bool {
	s := e.seg
	grace, tick := s.Grace(), int64(s.Tick())
	last := s.TickedAt.Load()
	elapsed := now - int64(last)
	if elapsed < 0 {
		// The caller's now may be older than another member's tick. Within one
		// boot the clock, read after the word, cannot be behind it.
		now = monoNow()
		elapsed = now - int64(last)
	}
	if elapsed >= 0 && elapsed < tick {
		return false
	}
	pause(pointTickEpoch)
	epoch := s.Epoch.Load()
	pause(pointTickTake)
	if !s.TickedAt.CompareAndSwap(last, uint64(now)) {
		return false
	}
	if elapsed < 0 || elapsed/tick > int64(min(grace, 1<<30)) {
		pause(pointTickForgive)
		e.forgive(epoch)
	}
	pause(pointTickAdvance)
	if !s.Epoch.CompareAndSwap(epoch, epoch+1) {
		return false
	}
	pause(pointTickJudge)
	if e.Stale() {
		s.WakeAll()
	}
	return true
}

// forgive moves the forgiven epoch forward, never back.
func (e *Election) forgive(epoch uint64) {
	for {
		f := e.seg.Forgiven.Load()
		if int64(epoch-f) <= 0 || e.seg.Forgiven.CompareAndSwap(f, epoch) {
			return
		}
	}
}

// TickEpoch advances the epoch unconditionally and returns it. For programs
// that tick by themselves; it forgives nobody.
func (e *Election) TickEpoch() uint64 { return e.seg.Epoch.Add(1) }
