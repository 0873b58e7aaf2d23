package supervisor

import (
	"fmt"
	"slices"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// turn is one step at work: the state that it makes and the effects so far.
type turn struct {
	s   state
	now moment
	in  input
	out []effect
}

// step decides what follows from one input. It is pure: no clock, no I/O, no
// randomness of its own; the state that it gets is not changed.
func step(s state, in input, now moment) (state, []effect) {
	t := &turn{s: s.clone(), now: now, in: in}
	was := s.shown()
	switch in := in.(type) {
	case inTurn:
		t.word(in.index, wTurn)
	case inLaunched:
		t.word(in.index, wLaunched)
	case inUnlaunched:
		t.word(in.index, wUnlaunched)
	case inEnded:
		if t.s.workers[in.index].pid == in.pid {
			t.word(in.index, wEnded)
		}
	case inExited:
		if t.s.workers[in.index].pid == in.pid {
			t.word(in.index, wExited)
		}
	case inDue:
		for i := range t.s.workers {
			w := &t.s.workers[i]
			if w.barred <= now.Mono {
				w.barred = 0
			}
			if w.due != 0 && w.due <= now.Mono {
				t.word(i, wDue)
			}
			if w.vitals.beatBy != 0 && w.vitals.beatBy <= now.Mono {
				w.vitals.beatBy, w.vitals.failure = 0, ""
				t.word(i, wSilent)
			}
		}
		t.happen(hDue)
	case inHooked:
		t.happen(hHooked)
	case inSeen:
		t.happen(hSeen)
	case inLost:
		t.happen(hLost)
	case inRenewed:
		t.happen(hRenewed)
	case inSockets:
		t.happen(hSockets)
	case inJob:
		t.happen(hJob)
	case inReplay:
		t.happen(hReplay)
	case inReload:
		t.happen(hReload)
	case inAck:
		t.happen(hAck)
	case inByHand:
		t.happen(hHand)
	case inDrill:
		t.happen(hDrill)
	case inSwitchover:
		t.happen(hSwitchover)
	case inFailover:
		t.happen(hFailover)
	case inPause:
		t.happen(hPause)
	case inResume:
		t.happen(hResume)
	case inClose:
		t.happen(hClose)
	case inKill:
		t.happen(hKill)
	// What follows is the same whatever the role is doing.
	case inCalled:
		t.noteCall(in)
	case inHook:
		t.emit(Event{Type: EventPlugin, Plugin: t.s.policy.Hooks[in.hook].Name, Token: t.s.told.Token,
			Text: in.status.State, Error: in.status.LastError})
	case inHit:
		t.noteHit(in)
	case inSignal:
		t.signal(in)
	case inRank:
		respond(t, in.reply, t.rank(in.to), nil)
	case inNotify:
		t.noteWords(in)
	case inProbed:
		t.noteProbe(in)
	case inFrozen:
		t.thaw(in.gap)
	case inUnchanged:
		t.s.reloadFailed = ""
	default:
		panic(fmt.Sprintf("supervisor: an input without a column: %T", in))
	}
	t.settle()
	if is := t.s.shown(); is != was {
		text := fmt.Sprintf("%s -> %s", was, is)
		if t.s.why != "" {
			text += ": " + t.s.why
		}
		t.emit(Event{Type: EventRoleState, Text: text})
	}
	return t.s, t.out
}

func (t *turn) word(i int, w word) { workerTable[t.s.workers[i].lot][w](t, i) }

func (t *turn) happen(h happening) { roleTable[t.s.phase][h](t, t.in) }

func (t *turn) do(e effect) { t.out = append(t.out, e) }

func (t *turn) emit(e Event) { t.do(doEmit{e}) }

func (t *turn) warn(format string, args ...any) {
	t.emit(Event{Type: EventWarning, Text: fmt.Sprintf(format, args...)})
}

func (t *turn) setControl() { t.do(doControl{t.s.controlNow()}) }

// job hands a transition to the hooks, if there are any.
func (t *turn) job(kind hookMoment, tr role.Transition, only []int) bool {
	if len(t.s.policy.Hooks) == 0 || t.s.rehooking {
		return false
	}
	t.s.jobs++
	t.do(doJob{kind, tr, only})
	return true
}

func respond[T any](t *turn, to reply[T], value T, err error) {
	if to != nil {
		t.do(doAnswer{func() { to <- answer[T]{value, err} }})
	}
}

// settle does what has become possible, whatever the input was.
func (t *turn) settle() {
	s := &t.s
	switch s.phase {
	case phaseStarting, phaseLed, phaseSwitching, phaseVacant, phasePaused, phaseHeld:
		t.watchChange()
		t.watchDrill()
		t.stopLast()
		t.watchRoll()
		t.place()
		t.rebind()
		t.putLast()
	case phaseRenewing:
		if s.processes() == 0 && s.jobs == 0 && !s.renewing && s.retryAt == 0 {
			s.renewing = true
			t.do(doRenew{})
		}
	case phaseClosing:
		if s.byPID(s.owner.pid) < 0 && s.byPID(s.active.pid) < 0 {
			t.loseLeader(role.ReasonStopped)
			if s.jobs == 0 {
				t.beginStopping()
			}
		}
	}
	if s.phase == phaseStopping && s.processes() == 0 && s.jobs == 0 && s.reopening {
		t.reopened()
		t.settle()
		return
	}
	if s.phase == phaseStopping && s.processes() == 0 && (s.jobs == 0 || s.killed) {
		s.phase = phaseEnding
		s.jobs = 0
		if !t.job(momentStop, role.Transition{}, nil) {
			t.becomeStoppedRole()
		}
	}
	t.writeRecords()
}

// place names what the running role is doing, and why.
func (t *turn) place() {
	s := &t.s
	t.watchRace()
	switch {
	case s.changing():
		s.phase = phaseSwitching
	case s.led.term != 0:
		s.phase = phaseLed
	case s.control.mode == controlHeld:
		s.phase = phaseHeld
	case s.pause.on:
		s.phase = phasePaused
	case s.ledBy != "":
		s.phase = phaseVacant
	default:
		s.phase = phaseStarting
	}
	s.why = t.reasonFor()
}

func (t *turn) reasonFor() string {
	s := &t.s
	if s.changing() {
		return t.changeReason()
	}
	if s.control.mode == controlHeld && s.fencing.held {
		return fmt.Sprintf("pid %d (%s), which led before, was told to end %v ago and still is not proven dead: nobody may lead beside it; look at `cat /proc/%d/stack`, then `standbyd ack %s`",
			s.fencing.pid, s.nameOf(s.fencing.pid), time.Duration(t.now.Mono-s.fencing.since).Round(time.Second), s.fencing.pid, s.policy.Name)
	}
	if s.control.mode == controlHeld && s.refused.held {
		return fmt.Sprintf("%d promotions in a row had to be taken back, the last one for %s; no further one before %s; mend the plugin, then `standbyd ack %s`",
			s.refused.row, s.refused.why, t.wall(s.control.until).Format("15:04:05"), s.policy.Name)
	}
	if s.control.mode == controlHeld {
		return fmt.Sprintf("%d failovers within %v%s: no further takeover before %s; `standbyd ack %s` allows it at once",
			s.policy.Failovers, s.policy.Per, s.lastEnd.clause(), t.wall(s.control.until).Format("15:04:05"), s.policy.Name)
	}
	if s.pause.on {
		return t.pauseReason()
	}
	if s.led.term != 0 {
		return ""
	}
	if i := s.byPID(s.owner.pid); i >= 0 {
		switch {
		case s.control.gate && s.control.granted != s.owner.term:
			return s.workers[i].name + " holds the lease and waits for the plugins' consent"
		case s.active.pid != 0 && s.active.pid != s.owner.pid:
			return fmt.Sprintf("%s holds the lease and waits for the end of pid %d", s.workers[i].name, s.active.pid)
		}
		return s.workers[i].name + " holds the lease and is about to lead"
	}
	if s.control.mode == controlPaused {
		return fmt.Sprintf("%d promotions in a row were refused or had to be taken back, the next one is tried at %s; the last one: %s; mend the plugin, `standbyd logs %s` has what it printed",
			s.refused.row, t.wall(s.control.until).Format("15:04:05"), s.refused.why, s.policy.Name)
	}
	if why := t.whyNobody(); why != "" {
		return why
	}
	return t.standbyReason()
}

// fewReasons is how many workers a role's reason tells about.
const fewReasons = 3

// idleWait is how long nobody may be in the race before status says so.
const idleWait = time.Second

// standbyReason says what the ready standbys of a role without a leader do.
func (t *turn) standbyReason() string {
	s := &t.s
	switch {
	case s.idle == 0 || t.now.Mono-s.idle < int64(idleWait):
		return "a standby is ready and about to take over"
	case !slices.ContainsFunc(s.seats, func(v seatView) bool { return s.able(v) && !v.bars }):
		return fmt.Sprintf("the ready standbys may not take over by themselves (nofailover); `standbyd failover %s --to WORKER` makes one lead", s.policy.Name)
	case s.shortLeads == 0 && t.unseenLeads() > 0:
		return fmt.Sprintf("the ready standbys wait out their back-off: the last %d leaderships ended as soon as they had begun, `standbyd logs %s` may say why",
			t.unseenLeads(), s.policy.Name)
	case s.shortLeads == 0:
		return "the ready standbys wait out their back-off after claims that failed"
	}
	return fmt.Sprintf("the ready standbys wait out their back-off: the last %d leaderships in a row ended within %v each, `standbyd logs %s` may say why",
		s.shortLeads, shortLead, s.policy.Name)
}

// unseenLeads counts the leaderships since the last one that we saw.
func (t *turn) unseenLeads() (n int) {
	for i := range t.s.ring {
		if e := &t.s.ring[i]; e.term > t.s.ledTerms[1] && e.activated != 0 {
			n++
		}
	}
	return n
}

// watchRace notes since when nobody would claim although somebody is ready.
func (t *turn) watchRace() {
	s := &t.s
	ready := slices.ContainsFunc(s.seats, func(v seatView) bool { return s.able(v) })
	racing := slices.ContainsFunc(s.seats, func(v seatView) bool { return v.racing && s.able(v) })
	switch {
	case s.led.term != 0 || s.owner.pid != 0 || racing || !ready:
		s.idle = 0
	case s.idle == 0:
		s.idle = t.now.Mono
	}
}

// rebind binds listeners that could not be had back from the workers, once
// nobody can hold them any more.
func (t *turn) rebind() {
	s := &t.s
	if !s.sockets && !s.binding && s.socketsS == 0 && s.processes() == 0 {
		s.binding = true
		t.do(doBindSockets{})
	}
}

func (t *turn) noteCall(in inCalled) {
	e := Event{Type: EventHook, Plugin: t.s.policy.Hooks[in.hook].Name, Worker: in.t.Worker, PID: in.t.PID,
		Token: in.t.Token, Reason: in.t.Reason, Text: in.moment.String()}
	failure := ""
	if in.err != nil {
		failure = in.err.Error()
	}
	e.Error = failure
	kept := make([]string, len(t.s.policy.Hooks))
	copy(kept, t.s.hookErrors)
	kept[in.hook] = failure
	t.s.hookErrors = kept
	if in.hung {
		hangs := make([]int, len(t.s.policy.Hooks))
		copy(hangs, t.s.hookHangs)
		hangs[in.hook]++
		t.s.hookHangs = hangs
	}
	t.emit(e)
}
