package supervisor

import (
	"fmt"
	"slices"
	"time"
)

// pausing is an operator's word: the role does nothing by itself.
type pausing struct {
	on    bool
	since time.Time // zero if an earlier supervisor was told
	until int64     // mono ns; 0: until resume
}

// controlNow is the control word as the segment has to hold it: what the role
// wants by itself, and over that the operator's pause. What forbids more stays.
func (s *state) controlNow() controlWord {
	w := s.control
	if !s.pause.on || w.mode == controlClosed {
		return w
	}
	w.byHand = true
	switch {
	case w.mode == controlHeld && s.pause.until != 0 && w.until != 0:
		w.until = max(w.until, s.pause.until)
	case w.mode == controlHeld:
		w.until = 0
	default:
		w.mode, w.until = controlPaused, s.pause.until
	}
	return w
}

func pause(t *turn, in input) {
	ask := in.(inPause)
	s := &t.s
	if err := t.leaderGoes(); err != nil {
		respond(t, ask.reply, PauseStatus{}, err)
		return
	}
	s.pause = pausing{on: true, since: t.now.Wall}
	if ask.length > 0 {
		s.pause.until = t.now.after(ask.length)
	}
	t.setControl()
	text := "until resume"
	if s.pause.until != 0 {
		text = "for " + ask.length.String()
	}
	t.emit(Event{Type: EventPaused, Text: text})
	respond(t, ask.reply, *t.pauseStatus(), nil)
}

// leaderGoes says why a role cannot be paused yet: its leader has been told to
// end, and in a paused role nobody would follow. Of a role that is stopped as
// a whole nobody is meant to.
func (t *turn) leaderGoes() error {
	s := &t.s
	if s.pause.on || s.led.term == 0 || s.led.worker < 0 || s.workers[s.led.worker].lot != lotStopping ||
		!slices.ContainsFunc(s.workers, func(w worker) bool { return !w.extra && !w.halted }) {
		return nil
	}
	return fmt.Errorf("%w: %s, which leads, is told to end, and in a paused role nobody would follow; pause it again when another one leads", ErrBusy, s.nameOf(s.led.pid))
}

func unpause(t *turn, in input) {
	ask := in.(inResume)
	was := t.s.pause.on
	if was {
		t.endPause("as asked")
	}
	respond(t, ask.reply, was, nil)
}

func refusePause(t *turn, in input) {
	switch in := in.(type) {
	case inPause:
		respond(t, in.reply, PauseStatus{}, ErrNotRunning)
	case inResume:
		respond(t, in.reply, false, ErrNotRunning)
	}
}

// pauseDue ends a pause whose time is over.
func (t *turn) pauseDue() {
	if p := t.s.pause; p.on && p.until != 0 && p.until <= t.now.Mono {
		t.endPause("its time is over")
	}
}

func (t *turn) endPause(why string) {
	t.s.pause = pausing{}
	t.setControl()
	t.emit(Event{Type: EventResumed, Text: why})
	if t.s.hooked && t.s.phase != phaseRenewing {
		t.startWanted() // the leader's place, if it is empty
	}
}

// pauseStatus is the pause for people, nil if there is none.
func (t *turn) pauseStatus() *PauseStatus { return t.s.pauseStatus(t.now) }

func (s *state) pauseStatus(now moment) *PauseStatus {
	if !s.pause.on {
		return nil
	}
	p := &PauseStatus{Role: s.policy.Name}
	if !s.pause.since.IsZero() {
		since := s.pause.since
		p.Since = &since
	}
	if s.pause.until != 0 {
		until := now.Wall.Add(time.Duration(s.pause.until - now.Mono))
		p.Until = &until
	}
	return p
}

// pauseEnd says until when the role is paused.
func (t *turn) pauseEnd() string {
	s := &t.s
	if s.pause.until != 0 {
		return fmt.Sprintf("until %s or `standbyd resume %s`", t.wall(s.pause.until).Format("15:04:05"), s.policy.Name)
	}
	return "until `standbyd resume " + s.policy.Name + "`"
}

func (t *turn) pauseReason() string {
	s, end := &t.s, t.pauseEnd()
	if s.led.term != 0 {
		return fmt.Sprintf("paused: no failover, no preemption, no restart of the leader %s", end)
	}
	return fmt.Sprintf("paused: nobody takes over by itself %s; `standbyd failover %s` makes a standby lead", end, s.policy.Name)
}
