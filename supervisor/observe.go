package supervisor

import (
	"slices"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// observe takes one look at the segment for true.
func observe(t *turn, in input) {
	seen := in.(inSeen)
	s := &t.s
	s.owner, s.active, s.epoch, s.seats = seen.owner, seen.active, seen.epoch, seen.seats
	if seen.ring != nil {
		s.ring = seen.ring
	}
	s.noteSeats()
	if s.pending != nil && s.pending.done {
		s.pending.looks++
	}
	t.watchLeader()
	for i := range s.workers {
		t.look(i)
	}
	t.admit()
	t.watchClaim()
	t.watchPace()
	t.watchBeats()
}

// view is what the segment says of a worker, as a column of workerTable.
func (t *turn) view(w *worker) word {
	s := &t.s
	if s.active.pid == uint32(w.pid) {
		if s.owner == s.active && s.control.mode != controlClosed && s.control.resign != s.active.term {
			return wLeader
		}
		return wDraining
	}
	ready := t.readyUnseated(w)
	for _, v := range s.seats {
		if v.pid == uint32(w.pid) {
			ready = v.ready && t.admitted(w)
		}
	}
	if ready {
		return wStandby
	}
	return wWarming
}

// watchLeader compares the words with who led when we looked last.
func (t *turn) watchLeader() {
	s := &t.s
	if s.led.term != 0 && (s.active != s.led.hold || s.owner != s.led.hold) {
		t.loseLeader(t.whyLost())
	}
	if s.led.term == 0 && s.active.pid != 0 && s.active == s.owner && s.phase < phaseRenewing && !s.unreported(s.active.pid) {
		t.gainLeader()
	}
	if s.led.term == 0 {
		s.adopted = false // whoever leads from now on came under our eyes
	}
}

// unreported: pid may be a worker whose launch has not been reported yet; a
// quick one leads before that, and would lead without a name.
func (s *state) unreported(pid uint32) bool {
	return s.byPID(pid) < 0 && slices.ContainsFunc(s.workers, func(w worker) bool { return w.lot == lotStarting && w.pid == 0 })
}

// whyLost names the end of the present leadership as well as it is known now;
// a successor's entry in the ring knows best.
func (t *turn) whyLost() role.Reason {
	s := &t.s
	if s.expects(s.led.term) {
		return role.ReasonDrill
	}
	if c := s.change; c != nil && c.term == s.led.term && (c.forced || s.living(s.led.pid) >= 0) {
		return c.reason()
	}
	if s.condemned == s.led.term {
		return role.ReasonHang
	}
	if s.ordered == s.led.term {
		return role.ReasonStopped
	}
	if e := t.entryAfter(s.led.term); e != nil && e.reason != "" {
		return e.reason
	}
	i := s.byPID(s.led.pid)
	switch {
	case i < 0 || s.workers[i].lot == lotEnded:
		return role.ReasonCrash
	case s.phase >= phaseClosing:
		return role.ReasonStopped
	case s.active.pid == 0 || s.owner.pid == 0:
		return role.ReasonStepDown
	}
	return role.ReasonHang
}

// shortLead: a leadership that was not longer counts as one of a row of failed
// ones, as it does for the workers' own back-off.
const shortLead = 30 * time.Second

// loseLeader ends the present leadership, if there is one.
func (t *turn) loseLeader(reason role.Reason) {
	s := &t.s
	if s.led.term == 0 {
		return
	}
	token := s.token(s.led.term)
	name := s.nameOf(s.led.pid)
	t.emit(Event{Type: EventLeaderLost, Worker: name, PID: int(s.led.pid), Token: token, Reason: reason})
	t.noteEnd(reason)
	if s.pending != nil && s.pending.term == s.led.term {
		s.pending.done, s.pending.looks = true, recordLooks
		t.writeRecords()
	}
	if s.told.Token != 0 {
		tr := s.told
		tr.Reason = reason
		t.job(momentDemote, tr, nil)
	}
	s.shortLeads++
	if t.now.Mono-s.led.since > int64(shortLead) || reason == role.ReasonPreempt {
		s.shortLeads = 0
	}
	s.told, s.failing, s.retryAt, s.retries = role.Transition{}, nil, 0, 0
	s.led = leadership{worker: -1}
}

// gainLeader begins the leadership that the active word names.
func (t *turn) gainLeader() {
	s := &t.s
	s.led = leadership{hold: s.active, worker: s.byPID(s.active.pid), prev: s.ledBy, since: t.now.Mono}
	s.led.reason = t.reasonOf(s.active.term)
	name := s.nameOf(s.active.pid)
	told := s.led.reason
	if s.adopted {
		told = role.ReasonAdopted
	}
	s.told = role.Transition{Role: s.policy.Name, Token: s.token(s.active.term), Worker: name, PID: int(s.active.pid),
		Previous: s.ledBy, Reason: told, Segment: s.segment}
	t.emit(Event{Type: EventLeaderActive, Worker: name, PID: int(s.active.pid), Token: s.told.Token, Reason: told})
	s.ledBy = name
	s.ledTerms = [2]uint64{s.ledTerms[1], s.led.term}
	if s.active.term > s.recorded {
		s.pending = &pendingRecord{term: s.active.term}
	}
	if !t.job(momentPromote, s.told, nil) || s.adopted {
		if s.pending != nil {
			s.pending.done = true
		}
	}
	t.countFailovers()
	s.adopted = false
	if s.control.nominee >= 0 {
		s.control.nominee, s.control.planned = -1, false
		if s.control.mode == controlOpen {
			s.control.until = 0
		}
		t.setControl()
	}
	for i := range s.workers {
		s.workers[i].led = false // whoever led before has been followed
	}
	if s.pause.on {
		t.startWanted() // the place of a leader that ended in the pause
	}
}

// reasonOf is the reason for a term: ours, or the claimant's own.
func (t *turn) reasonOf(term uint64) role.Reason {
	s := &t.s
	before := t.activeBefore(term)
	if before != nil && s.expects(before.term) {
		return role.ReasonDrill
	}
	if c := s.change; c != nil && c.term < term && c.forced && (before == nil || before.term <= c.term) {
		return role.ReasonForced
	}
	if before != nil && s.condemned == before.term {
		return role.ReasonHang
	}
	if before != nil && s.ordered == before.term {
		return role.ReasonStopped
	}
	e := t.entry(term)
	if before != nil {
		// Terms that never got active are not changes of leader: the reason is
		// that of the first claim after the leader that ended.
		if first := t.entryAfter(before.term); first != nil {
			e = first
		}
	}
	switch {
	case e != nil && e.reason == role.ReasonStepDown && s.change != nil && before != nil && before.term == s.change.term:
		return role.ReasonSwitchover
	case e != nil && e.reason != "":
		return e.reason
	case before == nil:
		return role.ReasonFirst
	}
	return role.ReasonCrash
}

// countFailovers spends the budget, and holds the role when it is gone.
func (t *turn) countFailovers() {
	s := &t.s
	t.spendable()
	recent := s.failovers
	for i := range s.ring {
		e := &s.ring[i]
		if e.term <= s.counted || e.term > s.led.term || e.activated == 0 && e.term != s.led.term {
			continue
		}
		at := e.activated
		if at == 0 {
			at = t.now.Mono
		}
		if failover(t.reasonOf(e.term)) && !t.byHand(e.term) && at > t.now.Mono-int64(s.policy.Per) {
			recent = append(recent, at)
		}
	}
	s.counted = s.led.term
	s.failovers = recent
	if len(recent) < s.policy.Failovers || s.control.mode != controlOpen {
		return
	}
	s.control.mode, s.control.nominee = controlHeld, -1
	s.control.until = t.now.after(s.policy.CoolDown)
	t.setControl()
	t.warn("%s", t.reasonFor())
}

// byHand: that term follows one whose end an operator has caused.
func (t *turn) byHand(term uint64) bool {
	if c := t.s.change; c != nil && term > c.term {
		return true
	}
	before := t.activeBefore(term)
	return before != nil && before.term == t.s.spared
}

// spendable forgets the failovers that are out of the budget's window.
func (t *turn) spendable() {
	recent := t.s.failovers[:0:0]
	for _, at := range t.s.failovers {
		if at > t.now.Mono-int64(t.s.policy.Per) {
			recent = append(recent, at)
		}
	}
	t.s.failovers = recent
}

// failover: the reasons that spend the budget. What an operator has asked for
// does not.
func failover(r role.Reason) bool { return r == role.ReasonCrash || r == role.ReasonHang }

// watchFencing holds the role while nobody can lead because the previous leader
// cannot be proven dead: a process that is stuck in the kernel.
func (t *turn) watchFencing() {
	s := &t.s
	if s.active.pid == 0 || s.owner.pid == s.active.pid || s.owner.pid == 0 && s.fencing.hold != s.active ||
		s.policy.Fence == FenceToken || s.phase >= phaseRenewing {
		if s.fencing.held && s.control.mode == controlHeld {
			t.free()
		}
		s.fencing = fencing{}
		return
	}
	if s.fencing.hold != s.active {
		s.fencing = fencing{hold: s.active, since: t.now.Mono}
	}
	wait := s.policy.FenceTimeout
	if t.reasonOf(s.owner.term) == role.ReasonPreempt {
		wait += s.policy.DrainTimeout // it is asked first
	}
	if s.fencing.held || s.control.mode != controlOpen || t.now.Mono-s.fencing.since < int64(wait) {
		return
	}
	s.fencing.held = true
	s.control.mode, s.control.nominee = controlHeld, -1
	s.control.until = t.now.after(s.policy.CoolDown)
	t.setControl()
	t.warn("%s", t.reasonFor())
}

// watchClaim asks the hooks about a candidate that waits at the gate.
func (t *turn) watchClaim() {
	s := &t.s
	term := s.owner.term
	t.watchFencing()
	if s.owner.pid == 0 || s.owner == s.active || s.phase >= phaseRenewing {
		return
	}
	if !s.hooked || !s.control.gate || s.control.granted == term || s.control.resign == term || s.asking == term {
		return
	}
	s.asking = term
	if !t.job(momentPrePromote, role.Transition{Role: s.policy.Name, Token: s.token(term), Worker: s.nameOf(s.owner.pid),
		PID: int(s.owner.pid), Previous: s.ledBy, Reason: t.reasonOf(term), Segment: s.segment}, nil) {
		s.control.granted = term
		t.setControl()
	}
}

// The ring, which a state keeps newest last.

func (t *turn) entry(term uint64) *ringView {
	for i := len(t.s.ring) - 1; i >= 0; i-- {
		if t.s.ring[i].term == term {
			return &t.s.ring[i]
		}
	}
	return nil
}

// entryAfter is the first claim after a term.
func (t *turn) entryAfter(term uint64) *ringView {
	for i := range t.s.ring {
		if t.s.ring[i].term > term {
			return &t.s.ring[i]
		}
	}
	return nil
}

// activeBefore is the last term before one that really led. A leader that
// died between the active word and its own stamp led all the same, if we saw it.
func (t *turn) activeBefore(term uint64) *ringView {
	for i := len(t.s.ring) - 1; i >= 0; i-- {
		if e := &t.s.ring[i]; e.term < term && (e.activated != 0 || e.term == t.s.ledTerms[0] || e.term == t.s.ledTerms[1] || t.s.drill != nil && e.term == t.s.drill.term) {
			return e
		}
	}
	return nil
}

// recordLooks is how many looks a record waits for the claimant's own stamp,
// which follows the active word by a few instructions.
const recordLooks = 5

// writeRecords turns the terms that are through into history.
func (t *turn) writeRecords() {
	s := &t.s
	p := s.pending
	if p == nil || !p.done {
		return
	}
	if e := t.entry(p.term); (e == nil || e.activated == 0) && p.looks < recordLooks {
		return
	}
	s.pending = nil
	for i := range s.ring {
		if e := s.ring[i]; e.term > s.recorded && e.term < p.term && e.activated != 0 {
			rec := t.record(e, 0)
			t.write(rec)
			t.drilled(rec)
		}
	}
	e := ringView{term: p.term, pid: s.led.pid}
	if got := t.entry(p.term); got != nil {
		e = *got
	}
	rec := t.record(e, p.hooks)
	t.write(rec)
	s.recorded = p.term
	t.drilled(rec)
	t.changed(rec)
}

func (t *turn) write(rec Record) {
	t.do(doRecord{rec})
	if rec.Reason != role.ReasonFirst {
		kept := rec
		t.s.last = &kept
		t.emit(Event{Type: EventFailover, Worker: rec.To, PID: rec.ToPID, Token: rec.Token, Reason: rec.Reason, Record: &kept})
	}
}

// record measures one change of leader.
func (t *turn) record(e ringView, hooks int64) Record {
	s := &t.s
	rec := Record{Role: s.policy.Name, At: t.now.Wall, Reason: t.reasonOf(e.term), Term: e.term, Token: s.token(e.term),
		To: s.nameOf(e.pid), ToPID: int(e.pid)}
	if e.activated != 0 {
		rec.At = t.wall(e.activated)
	}
	var zero int64
	if before := t.activeBefore(e.term); before != nil {
		rec.From, rec.FromPID = s.nameOf(before.pid), int(before.pid)
		if rec.Reason == role.ReasonHang && s.condemned == before.term {
			rec.Cause = s.condemnedFor
		}
		zero = earliest(before.ended, before.retired, e.detected)
		if s.drill != nil && s.drill.term == before.term && s.drill.zero != 0 {
			zero, rec.Fault = s.drill.zero, s.drill.fault
		}
		rec.ReturnedUS, rec.EndedUS = phaseUS(before.retired, zero), phaseUS(before.ended, zero)
	}
	if e.activated == 0 || e.activated >= s.since {
		rec.DetectedUS = phaseUS(e.detected, zero)
	}
	rec.ClaimedUS, rec.FencedUS = phaseUS(e.claimed, zero), phaseUS(e.fenced, zero)
	rec.ActiveUS, rec.HooksUS = phaseUS(e.activated, zero), phaseUS(hooks, zero)
	return rec
}

func earliest(times ...int64) (first int64) {
	for _, at := range times {
		if at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// phaseUS is nil unless both ends were measured.
func phaseUS(at, zero int64) *float64 {
	if at == 0 || zero == 0 || at < zero {
		return nil
	}
	us := float64(at-zero) / float64(time.Microsecond)
	return &us
}
