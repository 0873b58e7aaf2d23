package supervisor

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// changeState is a change of leader that an operator has asked for. It lasts
// until the record of the next leader is written.
type changeState struct {
	forced  bool
	term    uint64 // of the leader that has to go; if nobody leads, the last one
	from    uint32 // pid of that leader, 0 if there is none
	to      uint32 // pid of the nominee, 0 once anybody will do
	seat    int
	base    uint64   // the latest term when it was named
	tried   []uint32 // pids of nominees that had the lease and gave it back; never written, only replaced
	rolled  bool     // part of a rolling change
	named   string   // the worker that was asked for, empty for any
	by      int64    // mono ns: given up then
	trouble string   // why it went otherwise than planned
	reply   reply[Record]
}

func (c *changeState) reason() role.Reason {
	if c.forced {
		return role.ReasonForced
	}
	return role.ReasonSwitchover
}

// changing: nobody leads yet instead of the leader that has to go.
func (s *state) changing() bool { return s.change != nil && s.led.term <= s.change.term }

// unchangeable says why there can be no switchover now, nil if there can.
func (t *turn) unchangeable() error {
	switch {
	case t.s.drill != nil || t.s.change != nil:
		return ErrBusy
	case t.s.led.term == 0:
		return t.refusal()
	}
	return nil
}

// refusal is why a role without a leader does nothing with one.
func (t *turn) refusal() error {
	s := &t.s
	switch {
	case s.phase >= phaseClosing:
		return ErrNotRunning
	case s.drill != nil || s.change != nil:
		return ErrBusy
	case s.why != "":
		return fmt.Errorf("%w: %s", ErrNoLeader, s.why)
	}
	return ErrNoLeader
}

func refuseChange(t *turn, in input) {
	switch in := in.(type) {
	case inSwitchover:
		respond(t, in.reply, Record{}, t.refusal())
	case inFailover:
		respond(t, in.reply, Record{}, t.refusal())
	}
}

// switchOver asks the leader to drain, and names who follows. Until the nominee
// is chosen nothing has happened.
func switchOver(t *turn, in input) {
	ask := in.(inSwitchover)
	if err := t.unchangeable(); err != nil {
		respond(t, ask.reply, Record{}, err)
		return
	}
	to, err := t.choose(ask.to)
	if err != nil {
		respond(t, ask.reply, Record{}, err)
		return
	}
	t.begin(&changeState{term: t.s.led.term, reply: ask.reply}, ask.to, to)
}

// failOver ends the leader's process, whatever it is doing, and names who
// follows. Without a leader it only names.
func failOver(t *turn, in input) {
	ask := in.(inFailover)
	s := &t.s
	refuse := func(err error) { respond(t, ask.reply, Record{}, err) }
	switch {
	case s.drill != nil || s.change != nil && (s.change.forced || !s.changing()):
		refuse(ErrBusy)
		return
	case s.fencing.held:
		refuse(fmt.Errorf("%w: %s", ErrNoStandby, s.why))
		return
	case s.led.term != 0 && s.living(s.led.pid) < 0 && s.byPID(s.led.pid) < 0:
		refuse(fmt.Errorf("the leader, pid %d, is no worker of this supervisor: end it by hand", s.led.pid))
		return
	case s.led.term == 0 && s.owner.pid != 0: // somebody is about to
		refuse(fmt.Errorf("%w: %s", ErrBusy, s.why))
		return
	}
	to, err := t.choose(ask.to)
	if err != nil {
		refuse(err)
		return
	}
	if s.change != nil { // a drain that takes too long
		respond(t, s.change.reply, Record{}, fmt.Errorf("%w: a failover was asked for instead", ErrBusy))
	}
	t.begin(&changeState{forced: true, term: max(s.owner.term, s.active.term), reply: ask.reply}, ask.to, to)
	if i := s.living(s.led.pid); s.led.term != 0 && i >= 0 {
		s.workers[i].struck = true
		t.do(doKillGroup{i})
	}
}

// begin nominates, and asks the leader to resign.
func (t *turn) begin(c *changeState, named int, to seatView) {
	s := &t.s
	if named >= 0 {
		c.named = s.workers[named].name
	}
	p := s.policy
	c.by = t.now.after(p.DrainTimeout + p.FenceTimeout + time.Duration(p.Grace+1)*p.Tick + p.HookTimeout + drainSlack)
	c.from = s.led.pid
	s.change = c
	s.control.resign = c.term
	verb := "a switchover"
	if c.forced {
		verb = "a failover"
	}
	from := s.nameOf(s.led.pid)
	if s.led.term == 0 {
		from = "nobody"
	}
	t.emit(Event{Type: EventChange, Worker: s.nameOf(to.pid), PID: int(to.pid), Reason: c.reason(),
		Text: fmt.Sprintf("%s from %s to %s was asked for", verb, from, s.nameOf(to.pid))})
	t.nameNext(to) // last: from here on the processors are the leader's and the nominee's
}

// nameNext writes the nomination of a change.
func (t *turn) nameNext(to seatView) {
	s := &t.s
	s.change.to, s.change.seat, s.change.base = to.pid, to.seat, max(s.owner.term, s.change.term)
	s.control.nominee, s.control.planned = to.seat, !s.change.forced
	if s.control.mode == controlOpen {
		s.control.until = s.change.by
	}
	t.setControl()
}

// watchChange sees to it that a change that is under way has an end: a nominee
// that is lost, or whose lead returned before anybody saw it lead, is replaced,
// and what takes too long is given up.
func (t *turn) watchChange() {
	s := &t.s
	c := s.change
	switch {
	case c == nil:
		return
	case !s.changing():
		c.by = 0 // the hooks have their own limits, and then there is a record
		return
	case c.by <= t.now.Mono:
		t.endChange(fmt.Errorf("%w: %s", ErrTimedOut, t.changeReason()))
		return
	case c.to == 0 || s.owner.pid == c.to && s.owner.term > c.base:
		return
	}
	// Nobody else may claim: it is in its back-off, and would have the next term, too.
	returned := s.owner.pid == 0 && s.owner.term > c.base
	v := s.seatIn(c.seat, c.to)
	if !returned && v != nil && s.able(*v) && s.control.nominee == c.seat {
		return
	}
	what := " was lost before it could lead"
	if returned {
		c.tried = append(slices.Clone(c.tried), c.to)
		if s.living(c.to) >= 0 {
			what = " led, and gave the lease back at once"
		}
	}
	if c.trouble == "" {
		c.trouble = s.nameOf(c.to) + what
	}
	var back *seatView // to the old leader only if nobody else is there
	for _, next := range t.ranked() {
		switch {
		case next.pid == c.to || t.barred(next) || slices.Contains(c.tried, next.pid):
		case next.pid == c.from:
			back = &next
		default:
			t.nameNext(next)
			return
		}
	}
	if back != nil {
		t.nameNext(*back)
		return
	}
	// Whoever comes first leads.
	c.to = 0
	s.control.nominee, s.control.planned = -1, false
	if s.control.mode == controlOpen {
		s.control.until = 0
	}
	t.setControl()
}

func (s *state) seatIn(seat int, pid uint32) *seatView {
	for k := range s.seats {
		if s.seats[k].seat == seat && s.seats[k].pid == pid {
			return &s.seats[k]
		}
	}
	return nil
}

// changed ends a change with the record of the next leader.
func (t *turn) changed(rec Record) {
	c := t.s.change
	if c == nil || rec.Term <= c.term {
		return
	}
	t.s.change = nil
	var err error
	if c.named != "" && rec.To != c.named || c.trouble != "" && rec.To == rec.From && rec.ToPID == rec.FromPID {
		why := c.trouble
		if why == "" {
			why = c.named + " did not take over"
		}
		err = fmt.Errorf("%s; %s leads", why, rec.To)
	}
	respond(t, c.reply, rec, err)
	t.rolledOver(c, rec)
}

// endChange gives up a change that is under way.
func (t *turn) endChange(err error) {
	s := &t.s
	c := s.change
	if c == nil {
		return
	}
	s.change = nil
	respond(t, c.reply, Record{}, err)
	t.rolledOver(c, Record{})
	if s.control.nominee == c.seat && s.phase < phaseRenewing {
		s.control.nominee, s.control.planned = -1, false
		if s.control.mode == controlOpen {
			s.control.until = 0
		}
		t.setControl()
	}
}

// changeReason says how far a change is.
func (t *turn) changeReason() string {
	s := &t.s
	c := s.change
	next := "whoever is ready first"
	if c.to != 0 {
		next = s.nameOf(c.to)
	}
	switch {
	case s.led.term != 0 && !c.forced:
		return fmt.Sprintf("%s drains, then %s leads; `standbyd failover %s` ends it at once", s.nameOf(s.led.pid), next, s.policy.Name)
	case s.led.term != 0:
		return fmt.Sprintf("%s is ended, then %s leads", s.nameOf(s.led.pid), next)
	}
	return next + " takes over"
}

// endsLead: signals that usually end or stop a process. An operator who sends
// one to a leader has caused its end.
func endsLead(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGSTOP:
		return true
	}
	return false
}

// leadEnd is the last leadership that failed.
type leadEnd struct {
	pid    int
	worker string
	reason role.Reason
	exit   string // as describeExit says it; empty while it is not known
}

func (e leadEnd) clause() string {
	switch {
	case e.pid == 0:
		return ""
	case e.exit == "" && e.reason == role.ReasonHang:
		return fmt.Sprintf(", the last one of %s (pid %d), which hung", e.worker, e.pid)
	case e.exit == "":
		return fmt.Sprintf(", the last one of %s (pid %d)", e.worker, e.pid)
	}
	return fmt.Sprintf(", the last one of %s (pid %d): %s", e.worker, e.pid, e.exit)
}

// noteEnd draws the conclusions of a leadership that has failed, unless it was
// ended on purpose: who fails within its probation is tried last.
func (t *turn) noteEnd(reason role.Reason) {
	s := &t.s
	if !failover(reason) {
		return
	}
	s.lastEnd = leadEnd{pid: int(s.led.pid), worker: s.nameOf(s.led.pid), reason: reason}
	if s.condemned == s.led.term {
		s.lastEnd.exit = "was ended: " + s.condemnedFor
	}
	i := s.indexOf(s.led.pid)
	if i >= 0 && s.workers[i].pid == 0 && s.workers[i].lastExit != nil && s.workers[i].lastExit.PID == int(s.led.pid) {
		s.lastEnd.exit = describeExit(*s.workers[i].lastExit)
	}
	if s.led.term == s.spared || s.change != nil || s.drill != nil || i < 0 {
		return
	}
	began := s.led.since
	if e := t.entry(s.led.term); e != nil && e.activated != 0 {
		began = e.activated
	}
	if t.now.Mono-began < int64(s.policy.Probation) {
		s.workers[i].barred = t.now.after(s.policy.Probation)
	}
}

// putLast brings the segment's word on who goes last up to date.
func (t *turn) putLast() {
	s := &t.s
	for _, v := range s.seats {
		if s.living(v.pid) >= 0 && v.last != t.barred(v) {
			t.do(doLast{v.seat, v.pid, t.barred(v)})
		}
	}
}
