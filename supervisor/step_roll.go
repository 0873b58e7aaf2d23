package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/standbyd/standbyd/coord/role"
)

// rollState is a change of the role's workers that is under way, one at a
// time: places without a process first, then standbys, then a switchover and
// the old leader. A worker that does not get ready ends it: a change of settings
// is then undone by the same moves, and else the ones that
// have not had their turn stay as they are.
type rollState struct {
	what     string // as the operator asked for it
	index    int    // the worker that is awaited, -1 for none
	by       int64  // mono ns: what is under way is given up then
	switches int    // switchovers so far
	renew    bool   // on a new segment: it is over when somebody leads again
	done     []string
	stopped  []string
	reply    reply[Rolled]
	trial    trial
	back     *inReload // to the config before, if a worker does not get ready; nil: there is no way back
	failure  error     // this is the way back, and why
}

// Rolled says what a rolling change has done.
type Rolled struct {
	Role    string   `json:"role"`
	Started []string `json:"started"` // workers that were started, in their order
	Stopped []string `json:"stopped"` // workers that are one too many now, also ones that had no process
	Left    []string `json:"left"`    // workers that still run as they were started before
	// Reverted: a worker did not get ready, and the role went back to the
	// config before.
	Reverted bool `json:"reverted,omitempty"`
}

// reconfigure takes a new config over. The loop has prepared what it needs.
func reconfigure(t *turn, in input) {
	got := in.(inReload)
	s := &t.s
	if err := t.unrollable(); err != nil && got.rolling {
		respond(t, got.reply, Rolled{}, err)
		return
	}
	t.endRoll(fmt.Errorf("%w: another change has begun", ErrBusy))
	hooks := s.policy.Hooks
	back := t.wayBack(&got)
	next := *got.policy
	s.nextHooks, next.Hooks = next.Hooks, hooks
	s.policy = &next
	for i := len(s.workers); i < next.Workers; i++ {
		s.workers = append(s.workers, worker{name: workerName(next.Name, i)})
	}
	var removed []string
	for i := range s.workers {
		w := &s.workers[i]
		if w.extra && i < next.Workers && w.pid == 0 {
			w.version = "" // an empty place again
			w.halted, w.rests = false, false
		}
		if !w.extra && i >= next.Workers && w.pid == 0 {
			removed = append(removed, w.name)
		}
		w.extra = i >= next.Workers
	}
	// Of the same settings the last restart that was asked for counts.
	if printOf(s.version) != got.version {
		s.version = got.version
	}
	s.roll = &rollState{what: got.what, index: -1, stopped: removed, renew: got.renew, reply: got.reply, back: back, failure: got.failure}
	s.reloadFailed = ""
	if got.failure != nil {
		s.reloadFailed = fmt.Sprintf("the reload of %s is undone, the settings before hold: %v", t.now.Wall.Format("2006-01-02 15:04:05"), got.failure)
	}
	if got.hooks {
		t.rehook()
	}
	if got.renew {
		t.reopen()
	}
}

// unrollable: the restart of a role that nobody leads by itself is no rolling one.
func (t *turn) unrollable() error {
	s := &t.s
	var instead string
	switch {
	case s.led.term != 0 && s.pause.on && s.places() == 1:
		return fmt.Errorf("%s leads alone, and in a paused role nobody would lead after its restart; `standbyd resume %s` first", s.nameOf(s.led.pid), s.policy.Name)
	case s.led.term != 0 || s.change != nil:
		return nil
	case s.halted():
		return fmt.Errorf("%w: all its workers were stopped; `standbyd start %s` starts them", ErrNoLeader, s.policy.Name)
	case s.pause.on, s.control.mode == controlHeld:
		instead = fmt.Sprintf("; `standbyd restart %s` restarts all at once", s.policy.Name)
	default:
		return nil // a takeover may be under way
	}
	return fmt.Errorf("%w: %s%s", ErrNoLeader, s.why, instead)
}

// places is how many workers the config wants.
func (s *state) places() (n int) {
	for i := range s.workers {
		if !s.workers[i].extra {
			n++
		}
	}
	return n
}

// wayBack is the config at work, for when a worker does not get ready with the
// next one. There is none if the workers' settings stay the same, or if none of
// them is ready now: then nothing of use would come back.
func (t *turn) wayBack(got *inReload) *inReload {
	s := &t.s
	if got.failure != nil || !got.renew && printOf(s.version) == printOf(got.version) ||
		!slices.ContainsFunc(s.workers, func(w worker) bool { return w.ready }) {
		return nil
	}
	before := *s.policy
	return &inReload{policy: &before, config: before.RoleConfig, user: got.was, version: s.version, renew: got.renew}
}

// goBack undoes a change in which a worker did not get ready. Plugins stay as
// the change has made them: they were replaced before any worker.
func (t *turn) goBack(failure error) {
	s := &t.s
	r := s.roll
	if r.back == nil {
		t.endRoll(failure)
		return
	}
	in := *r.back
	in.policy.Hooks, in.policy.HookTimeout = s.nextHooks, s.policy.HookTimeout
	in.config = in.policy.RoleConfig
	in.reply, in.failure = r.reply, failure
	s.roll = nil
	t.warn("%v; the role goes back to the settings before", failure)
	t.do(doReload{in})
}

func refuseReload(t *turn, in input) {
	err := ErrBusy
	if t.s.phase >= phaseClosing && !t.s.reopening {
		err = ErrNotRunning
	}
	got := in.(inReload)
	if got.failure != nil {
		err = fmt.Errorf("%w; it cannot go back to the settings before: %w", got.failure, err)
	}
	respond(t, got.reply, Rolled{}, err)
}

// rehook replaces the hooks: the old ones are demoted and stopped, and when
// that is done the new ones are started and told who leads.
func (t *turn) rehook() {
	s := &t.s
	if s.rehooking {
		return
	}
	if s.told.Token != 0 {
		tr := s.told
		tr.Reason = role.ReasonStopped
		t.job(momentDemote, tr, nil)
	}
	s.told, s.failing, s.retryAt, s.retries = role.Transition{}, nil, 0, 0
	stopping := t.job(momentStop, role.Transition{}, nil)
	s.rehooking, s.hooked = true, false
	if !stopping {
		t.hireAnew()
	}
}

// hireAnew follows the stop of the old hooks.
func (t *turn) hireAnew() {
	next := *t.s.policy
	next.Hooks = t.s.nextHooks
	t.s.policy, t.s.rehooking, t.s.jobs, t.s.asking, t.s.hookErrors, t.s.hookHangs = &next, false, 0, 0, nil, nil
	t.s.told = role.Transition{} // of a leader that came meanwhile nobody has been told
	t.do(doHire{})
}

// tellAnew promotes new hooks for a leadership that began before them.
func (t *turn) tellAnew() {
	s := &t.s
	if s.led.term == 0 || s.told.Token != 0 || s.phase >= phaseRenewing {
		return
	}
	s.told = role.Transition{Role: s.policy.Name, Token: s.token(s.led.term), Worker: s.nameOf(s.led.pid), PID: int(s.led.pid),
		Previous: s.led.prev, Reason: role.ReasonAdopted, Segment: s.segment}
	t.job(momentPromote, s.told, nil)
}

// reopen ends all workers in order, leader first, and starts them on a new
// segment: for what stands in the segment's header.
func (t *turn) reopen() {
	s := &t.s
	roll := s.roll
	s.roll = nil
	t.close()
	s.roll, s.reopening = roll, true
	s.phase, s.why = phaseClosing, "stops in order, to start with new settings on a new segment"
	s.drainBy = t.now.after(s.policy.DrainTimeout + drainSlack)
}

// reopened continues where all workers have ended.
func (t *turn) reopened() {
	s := &t.s
	s.reopening, s.phase = false, phaseRenewing
	s.owner, s.active, s.asking = hold{}, hold{}, 0
	for i := range s.workers {
		if w := &s.workers[i]; !w.extra {
			w.lot, w.wanted, w.why, w.due = lotBackoff, true, "waits for a new segment", 0
		}
	}
}

// stayClosed follows a request to stop for good while the role stops in order
// to start again.
func stayClosed(t *turn, _ input) {
	if t.s.reopening {
		t.s.reopening, t.s.why = false, "is being shut down"
		t.endRoll(ErrNotRunning)
	}
}

// stale: the worker runs as it was started before the last change.
func (s *state) stale(i int) bool {
	w := &s.workers[i]
	return w.pid != 0 && w.version != s.version && w.lot != lotEnded
}

// watchRoll makes the next move of a rolling change, if it is time for one.
func (t *turn) watchRoll() {
	s := &t.s
	r := s.roll
	if r != nil && r.trial.by <= t.now.Mono {
		r.trial.by = 0
	}
	if r == nil || s.change != nil || s.drill != nil || s.rehooking || !s.hooked || !s.sockets {
		return
	}
	if r.by != 0 && r.by <= t.now.Mono {
		t.endRoll(fmt.Errorf("%w: %s", ErrTimedOut, s.rollReason()))
		return
	}
	if t.onTrial() {
		return
	}
	if r.index >= 0 {
		switch w := &s.workers[r.index]; {
		case w.extra && w.pid == 0:
			r.stopped = append(slices.Clone(r.stopped), w.name)
			r.index = -1
		case w.extra:
			return
		case s.keptEmpty(w):
			t.endRoll(fmt.Errorf("%s: %s", w.name, w.why))
			return
		case w.version == s.version && w.ready:
			r.done = append(slices.Clone(r.done), w.name)
			r.index = -1
		case w.version == s.version && (w.lot == lotBackoff || w.lot == lotFailed || w.lot == lotStopped):
			t.goBack(fmt.Errorf("%s, started with the %s settings, did not get ready: %s", w.name, r.which(), w.why))
			return
		default:
			return
		}
	}
	for i := range s.workers { // empty places
		w := &s.workers[i]
		if w.lot == lotQueued && w.version != s.version {
			t.rollTo(i)
			return
		}
		if s.emptyPlace(w) {
			t.rollTo(i)
			t.word(i, wStart)
			return
		}
	}
	leader := -1
	for i := range s.workers {
		w := &s.workers[i]
		switch {
		case w.pid == 0 || w.lot == lotEnded || w.halted || !w.extra && !s.stale(i):
		case t.leads(w):
			leader = i
		case w.lot == lotStopping:
			t.rollTo(i)
			w.wanted = !w.extra
			return
		default:
			t.rollTo(i)
			t.restart(i)
			return
		}
	}
	switch {
	case leader >= 0:
		t.rollLeader(leader)
	case r.renew && t.rollRenewed():
	case r.renew && s.led.term != 0 && !r.trial.passed:
		t.tryLeader(s.led.term, s.led.pid)
	case !slices.ContainsFunc(s.workers, func(w worker) bool { return w.extra && w.pid != 0 }):
		t.endRoll(nil)
	}
}

// which settings workers are started with.
func (r *rollState) which() string {
	if r.failure != nil {
		return "earlier"
	}
	return "new"
}

// rollRenewed awaits those that start on a new segment, and that one leads.
func (t *turn) rollRenewed() (waits bool) {
	s := &t.s
	for i := range s.workers {
		w := &s.workers[i]
		if !w.extra && !w.halted && w.lot != lotStopped && !slices.Contains(s.roll.done, w.name) {
			t.rollTo(i)
			return true
		}
	}
	if s.led.term != 0 || len(s.roll.done) == 0 {
		return false
	}
	if s.roll.index != -1 || s.roll.by == 0 {
		t.rollTo(-1)
	}
	return true
}

// rollLeader hands the leadership over, so that the leader can be restarted as
// a standby. A role of one worker has nobody to hand it to.
func (t *turn) rollLeader(leader int) {
	s := &t.s
	r := s.roll
	others := 0
	for i := range s.workers {
		if w := &s.workers[i]; i != leader && !w.extra {
			others++
		}
	}
	if others == 0 {
		t.rollTo(leader)
		t.restart(leader)
		return
	}
	if s.led.term == 0 || s.led.worker != leader { // it is about to lead, or to stop
		if r.by == 0 {
			t.rollTo(-1)
		}
		return
	}
	for _, v := range t.ranked() {
		i := s.living(v.pid)
		if i < 0 || s.workers[i].extra || s.stale(i) || t.barred(v) {
			continue
		}
		if r.switches >= 2*len(s.workers) {
			t.endRoll(fmt.Errorf("%s does not hand the leadership over: it was asked %d times", s.workers[leader].name, r.switches))
			return
		}
		r.switches++
		t.rollTo(-1)
		t.begin(&changeState{term: s.led.term, rolled: true}, -1, v)
		return
	}
	if r.by == 0 {
		t.rollTo(-1) // somebody may get ready
	}
}

// rollTo awaits worker i from now on, or with -1 whatever comes next.
func (t *turn) rollTo(i int) {
	p := t.s.policy
	t.s.roll.index = i
	t.s.roll.by = t.now.after(p.StopTimeout + p.DrainTimeout + p.StartTimeout + killAgain)
}

// restart ends a worker; its place is filled at once if it is not one too many.
func (t *turn) restart(i int) {
	w := &t.s.workers[i]
	t.word(i, wStop)
	w.wanted = !w.extra
	if !w.extra {
		t.emit(Event{Type: EventChange, Worker: w.name, PID: w.pid, Text: w.name + " is restarted with the present settings"})
	} else {
		t.emit(Event{Type: EventChange, Worker: w.name, PID: w.pid, Text: w.name + " is one too many now: stopped"})
	}
}

// rollReason says what a rolling change waits for.
func (s *state) rollReason() string {
	r := s.roll
	if r.index >= 0 {
		w := &s.workers[r.index]
		if w.why != "" {
			return fmt.Sprintf("waits for %s (%s): %s", w.name, w.lot, w.why)
		}
		return fmt.Sprintf("waits for %s (%s)", w.name, w.lot)
	}
	return "waits for a standby with the new settings that could lead"
}

// endRoll answers whoever asked for the change.
func (t *turn) endRoll(err error) {
	s := &t.s
	r := s.roll
	if r == nil {
		return
	}
	s.roll = nil
	out := Rolled{Role: s.policy.Name, Started: append([]string{}, r.done...), Stopped: append([]string{}, r.stopped...), Left: []string{}}
	for i := range s.workers {
		if s.stale(i) {
			out.Left = append(out.Left, s.workers[i].name)
		}
	}
	if err != nil && len(out.Left) > 0 && !errors.Is(err, ErrNotRunning) {
		err = fmt.Errorf("%w; as before: %s", err, strings.Join(out.Left, ", "))
	}
	switch out.Reverted = r.failure != nil; {
	case r.failure != nil && err == nil:
		respond(t, r.reply, out, fmt.Errorf("%w; the role runs on with the settings before", r.failure))
		return
	case r.failure != nil:
		err = fmt.Errorf("%w; the way back to the settings before has stopped too: %w", r.failure, err)
	}
	if err != nil {
		t.warn("the change has stopped: %v", err)
	}
	respond(t, r.reply, out, err)
}
