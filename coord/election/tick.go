package election

// Tick advances the epoch if a tick has passed since the last one, whoever
// made it; every member and the supervisor call it, so that no single stopped
// process freezes the epoch. It says whether it did. now is CLOCK_MONOTONIC in
// nanoseconds, as the caller last read it; a last tick that lies in the future
// counts as passed, because that clock restarts at boot.
//
// The epoch is loaded first and the clock read last. So whatever tickers are
// stopped in the middle of this, and for how long: the epoch never runs ahead
// of time, and of three epochs in a row the last begins a whole tick after the
// first. An owner that beats once in each tick is never more than 3 behind.
//
// A gap longer than grace ticks means that nobody ran, the machine was paused,
// say: then the owner is forgiven for a whole grace, so that a pause of all is
// no failover.
//
// Whoever ticks judges the owner, and wakes the waiters if it is stale.
func (e *Election) Tick(now int64) bool {
	if !e.Advance(now) {
		return false
	}
	pause(pointTickJudge)
	if e.Stale() {
		e.seg.WakeAll()
	}
	return true
}

// Advance is Tick without the judgement, which is the caller's then: for who
// knows the candidates, and whom to wake first (heartbeat.Table.WakeHeirs).
func (e *Election) Advance(now int64) bool {
	s := e.seg
	grace, tick := s.Grace(), int64(s.Tick())
	// T1: an epoch that begins after this makes T5 fail: this tick was made.
	pause(pointTickEpoch)
	epoch := s.Epoch.Load()
	pause(pointTickLast)
	// T2
	last := s.TickedAt.Load()
	due := func() bool { d := now - int64(last); return d < 0 || d >= tick }
	if !due() {
		return false
	}
	pause(pointTickClock)
	// T3: the caller's now may be long past.
	if now = max(now, monoNow()); !due() {
		return false
	}
	elapsed := now - int64(last)
	pause(pointTickTake)
	if !s.TickedAt.CompareAndSwap(last, uint64(now)) {
		return false
	}
	// T4: before the epoch, so that nobody sees the new one unforgiven.
	if elapsed < 0 || elapsed/tick > int64(min(grace, 1<<30)) {
		pause(pointTickForgive)
		e.forgive(epoch)
	}
	// T5
	pause(pointTickAdvance)
	return s.Epoch.CompareAndSwap(epoch, epoch+1)
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
