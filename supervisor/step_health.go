package supervisor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What workers say of themselves, and what probes say of them.

// vitals is what is known of the present life of a worker beyond its seat.
type vitals struct {
	said      bool   // READY=1
	admitted  bool   // what the role's Ready asks for has come
	text      string // STATUS=
	stopping  bool
	reloading bool
	errno     int
	mainPID   int

	limit  time.Duration // between two WATCHDOG=1, 0 for none
	beatBy int64         // mono ns by which the next one has to come, 0: not watched now

	probed   bool   // the health probe has answered
	passed   bool   // the last try of the health probe has passed
	passes   int    // successes in a row of the ready probe
	failures int    // failures in a row of the probe that runs
	failure  string // the last one
	silent   bool   // it has not beaten for more than grace, and that was said
	sick     bool   // Health.Threshold failures in a row
	kept     bool   // it was said that it stays all the same
	led      bool   // it led when its end began
	joined   bool   // it has had a seat in its segment
	ended    string // why it is ended by the supervisor, as the cause of its death
}

type probeKind int

const (
	probeNone probeKind = iota
	probeReady
	probeHealth
)

// maxExtension bounds one EXTEND_TIMEOUT_USEC.
const maxExtension = time.Hour

// maxText bounds what a worker's STATUS can put into a snapshot.
const maxText = 200

// strangerEvery is how often it is said that strangers write to the socket.
const strangerEvery = time.Minute

// admitted: the role asks for nothing beyond the seat, or it has come.
func (t *turn) admitted(w *worker) bool { return !t.s.policy.Ready.IsSet() || w.vitals.admitted }

// readyUnseated judges a program that takes no seat.
func (t *turn) readyUnseated(w *worker) bool {
	v := &w.vitals
	if v.stopping {
		return false
	}
	return v.admitted || v.said && !t.s.policy.Ready.IsSet()
}

// leads: the worker may act, or holds the lease.
func (t *turn) leads(w *worker) bool {
	return w.pid != 0 && (t.s.active.pid == uint32(w.pid) || t.s.owner.pid == uint32(w.pid))
}

func (s *state) seated(w *worker) bool {
	return w.pid != 0 && slices.ContainsFunc(s.seats, func(v seatView) bool { return v.pid == uint32(w.pid) })
}

// observes: the role is in a phase in which its workers' words count.
func (t *turn) observes() bool { return t.s.phase < phaseStopping && t.s.phase != phaseRenewing }

// admit lets members contend that wait for it and may.
func (t *turn) admit() {
	for _, v := range t.s.seats {
		if i := t.s.living(v.pid); v.waits && i >= 0 && t.admitted(&t.s.workers[i]) {
			t.do(doAdmit{v.seat, v.pid})
		}
	}
}

// noteWords takes one datagram of a worker for what it says.
func (t *turn) noteWords(in inNotify) {
	s := &t.s
	i := slices.IndexFunc(s.workers, func(w worker) bool { return w.pid != 0 && slices.Contains(in.line, w.pid) })
	if i < 0 {
		if s.strangerAt == 0 || t.now.Mono-s.strangerAt >= int64(strangerEvery) {
			s.strangerAt = t.now.Mono
			t.warn("pid %d, which is no process of a worker of this role, has written to the role's socket: ignored", in.pid)
		}
		return
	}
	w := &s.workers[i]
	if w.lot == lotEnded {
		return
	}
	v := &w.vitals
	if text, ok := in.fields["STATUS"]; ok {
		v.text = clip(printable(text), maxText)
	}
	if n, err := strconv.Atoi(in.fields["ERRNO"]); err == nil {
		v.errno = n
	}
	if text, ok := in.fields["MAINPID"]; ok {
		if n, err := strconv.Atoi(text); err == nil && slices.Contains(in.mainLine, w.pid) {
			v.mainPID = n
		} else {
			t.emit(Event{Type: EventWarning, Worker: w.name, PID: w.pid,
				Text: fmt.Sprintf("%s says MAINPID=%s, which is no process of its own: ignored", w.name, clip(text, 20))})
		}
	}
	if d, ok := usec(in.fields["EXTEND_TIMEOUT_USEC"]); ok {
		by := t.now.after(min(d, maxExtension))
		if w.due != 0 && w.due < by && (w.lot == lotStarting || w.lot == lotStopping && w.signal != "KILL") {
			w.due = by
		}
	}
	if in.fields["STOPPING"] == "1" {
		v.stopping = true
	}
	if in.fields["RELOADING"] == "1" {
		v.reloading = true
	}
	if in.fields["READY"] == "1" {
		v.reloading = false
		if !v.said {
			v.said = true
			t.do(doList{})
		}
	}
	if d, ok := usec(in.fields["WATCHDOG_USEC"]); ok {
		v.limit = d
		if v.beatBy != 0 || w.ready {
			t.expectBeat(w)
		}
	}
	switch in.fields["WATCHDOG"] {
	case "1":
		if v.beatBy != 0 {
			t.expectBeat(w)
		}
	case "trigger":
		v.failure = "it asked for it: WATCHDOG=trigger"
		t.word(i, wSilent)
	}
	t.look(i)
}

// look judges a worker again, after something about it has changed.
func (t *turn) look(i int) {
	if w := &t.s.workers[i]; t.observes() && w.pid != 0 && w.lot != lotEnded {
		t.word(i, t.view(w))
	}
}

func usec(text string) (time.Duration, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n > uint64(365*24*time.Hour/time.Microsecond) {
		return 0, false
	}
	return time.Duration(n) * time.Microsecond, true
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most]
}

func (t *turn) expectBeat(w *worker) {
	w.vitals.beatBy = 0
	if w.vitals.limit > 0 {
		w.vitals.beatBy = t.now.after(w.vitals.limit)
	}
}

// watchHealth begins with the readiness of a life.
func (t *turn) watchHealth(i int) {
	w := &t.s.workers[i]
	w.vitals.failures, w.vitals.failure = 0, ""
	t.expectBeat(w)
	if t.s.policy.Health.IsSet() {
		t.do(doProbe{i, probeHealth})
	}
}

// noteProbe takes the answer of one try.
func (t *turn) noteProbe(in inProbed) {
	s := &t.s
	w := &s.workers[in.index]
	if w.pid == 0 || w.pid != in.pid || w.lot == lotEnded || w.lot == lotStopping {
		return
	}
	v := &w.vitals
	if in.kind == probeHealth {
		v.passed = in.err == nil
	}
	if in.err == nil {
		v.failures, v.failure = 0, ""
	} else {
		v.failures++
		v.failure = strings.TrimSpace(clip(printable(in.err.Error()), maxText))
	}
	switch {
	case in.kind == probeReady && v.admitted, in.kind == probeHealth && !w.ready:
	case in.kind == probeReady && in.err != nil:
		v.passes = 0
		w.why = "not ready yet: " + v.failure
	case in.kind == probeReady:
		if v.passes++; v.passes < s.policy.Ready.Threshold {
			return
		}
		v.admitted = true
		if w.lot == lotStarting {
			w.why = ""
		}
		t.do(doProbe{in.index, probeNone})
		t.do(doList{})
		t.admit()
		t.look(in.index)
	case in.err == nil:
		if v.probed = true; v.sick {
			v.sick, v.kept, w.why = false, false, ""
			t.emit(Event{Type: EventWorkerHealthy, Worker: w.name, PID: w.pid})
		}
	case v.failures >= s.policy.Health.Threshold:
		if v.probed = true; !v.sick {
			v.sick = true
			t.emit(Event{Type: EventWorkerUnhealthy, Worker: w.name, PID: w.pid, Text: v.complaint()})
		}
		t.word(in.index, wSick)
	}
}

func (v *vitals) complaint() string {
	return fmt.Sprintf("%d health probes in a row failed; the last one: %s", v.failures, v.failure)
}

// The cells.

// replaceSick ends a standby that is ill, if another worker is in health.
func replaceSick(t *turn, i int) {
	if !t.healthyBeside(i, false) {
		t.keepSick(i, "no other worker is in health")
		return
	}
	t.endSick(i, t.s.policy.StopTimeout)
}

// deposeSick does the same with a leader, if a standby is in health that may
// take over. Its work cannot be trusted to stop by itself: it gets the time of
// a drain and no more.
func deposeSick(t *turn, i int) {
	if !t.healthyBeside(i, true) {
		t.keepSick(i, "no standby in health could take over")
		return
	}
	t.condemn(t.s.workers[i].vitals.complaint())
	t.endSick(i, min(t.s.policy.StopTimeout, t.s.policy.DrainTimeout))
}

// killSilent ends a worker that has broken its own promise. That it may be the
// only one does not matter: it hangs.
func killSilent(t *turn, i int) {
	w := &t.s.workers[i]
	w.vitals.ended = w.vitals.failure
	if w.vitals.ended == "" {
		w.vitals.ended = fmt.Sprintf("no WATCHDOG=1 within %v", w.vitals.limit)
	}
	if t.s.active.pid == uint32(w.pid) {
		t.condemn(w.vitals.ended)
	}
	t.emit(Event{Type: EventWorkerUnhealthy, Worker: w.name, PID: w.pid, Text: w.vitals.ended + ": killed"})
	w.vitals.led = t.leads(w)
	w.stoppedAs, w.lot, w.signal, w.why = w.lot, lotStopping, "KILL", w.vitals.ended
	w.due, w.vitals.beatBy = t.now.after(killAgain), 0
	t.do(doKillGroup{i})
}

// condemn marks the present leadership as one that is ended by us, and why.
func (t *turn) condemn(why string) {
	t.s.condemned, t.s.condemnedFor = t.s.active.term, why
}

// inHealth: the worker is of use as far as can be known. One that was started a
// moment ago and has not passed a probe yet may have what the others have.
func (t *turn) inHealth(i int) bool {
	w := &t.s.workers[i]
	if !w.ready || w.vitals.sick || t.s.silentFor(i) > 0 {
		return false
	}
	return w.vitals.passed || !t.s.policy.Health.IsSet()
}

// healthyBeside: another worker is in health; to lead, one that could do so now.
func (t *turn) healthyBeside(i int, toLead bool) bool {
	s := &t.s
	if toLead && (s.control.mode != controlOpen || s.pause.on) {
		return false
	}
	for j := range s.workers {
		w := &s.workers[j]
		if j == i || !t.inHealth(j) || w.lot != lotStandby && w.lot != lotLeader {
			continue
		}
		if !toLead || slices.ContainsFunc(s.seats, func(v seatView) bool { return v.pid == uint32(w.pid) && v.ready && !v.bars }) {
			return true
		}
	}
	return false
}

// keepSick: a policy never stops the last worker that may be of use.
func (t *turn) keepSick(i int, because string) {
	w := &t.s.workers[i]
	w.why = w.vitals.complaint() + "; kept, because " + because
	if !w.vitals.kept {
		w.vitals.kept = true
		t.emit(Event{Type: EventWarning, Worker: w.name, PID: w.pid, Text: w.why})
	}
}

func (t *turn) endSick(i int, limit time.Duration) {
	w := &t.s.workers[i]
	w.vitals.ended = w.vitals.complaint()
	w.vitals.led = t.leads(w)
	w.stoppedAs, w.lot, w.why = w.lot, lotStopping, "is restarted: "+w.vitals.ended
	w.due, w.signal, w.vitals.beatBy = t.now.after(limit), t.s.policy.StopSignal, 0
	t.do(doSignal{index: i, sig: t.s.policy.stopSignal()})
}

// thaw moves the deadlines of workers by the time in which the supervisor did
// not run at all: they may have met them, and it could not see that.
func (t *turn) thaw(gap time.Duration) {
	for i := range t.s.workers {
		w := &t.s.workers[i]
		if w.pid != 0 && w.due != 0 {
			w.due += int64(gap)
		}
		if w.vitals.beatBy != 0 {
			w.vitals.beatBy += int64(gap)
		}
	}
	if t.s.drainBy != 0 {
		t.s.drainBy += int64(gap)
	}
}
