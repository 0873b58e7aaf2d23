package supervisor

import (
	"fmt"
	"slices"
	"time"
)

// The cells of workerTable.

// keptPIDs is how many past pids of a worker are remembered, to name them in
// records of terms that nobody watched.
const keptPIDs = 16

func ignore(*turn, int) {}

func want(t *turn, i int)   { t.s.workers[i].wanted = true }
func unwant(t *turn, i int) { t.s.workers[i].wanted = false }

// launchNow starts a process as soon as it is its turn, or says what it waits for.
func launchNow(t *turn, i int) {
	w := &t.s.workers[i]
	if w.extra {
		becomeStopped(t, i)
		return
	}
	w.wanted, w.due = true, 0
	if waits := t.s.cannotStart(w); waits != "" {
		w.lot, w.why = lotBackoff, waits
		return
	}
	w.lot, w.why, w.version = lotQueued, "", t.s.version
	t.do(doQueue{i})
}

// cannotStart says what has to come first, "" if nothing.
func (s *state) cannotStart(w *worker) string {
	switch {
	case s.phase == phaseRenewing:
		return "waits for a new segment"
	case !s.sockets:
		return "waits for the role's sockets"
	case s.keptEmpty(w):
		return fmt.Sprintf("led when it ended, and a paused role does not restart its leader; `standbyd resume %s`", s.policy.Name)
	}
	return ""
}

// launchInTurn starts a process, if there still can be one.
func launchInTurn(t *turn, i int) {
	w := &t.s.workers[i]
	if w.extra || t.s.cannotStart(w) != "" {
		launchNow(t, i) // which says what it is instead
		yield(t, i)
		return
	}
	if w.lastExit != nil && !w.orderly {
		w.restarts++
	}
	w.orderly = false
	w.lot, w.why, w.version, w.rests = lotStarting, "", t.s.version, false
	w.startAt, w.readyAt, w.told, w.struck, w.led = t.now.Mono, 0, false, false, false
	w.signal, w.vitals = "", vitals{limit: t.s.policy.Watchdog}
	w.due = t.now.after(t.s.policy.StartTimeout)
	t.do(doLaunch{i})
}

// yield lets the next one start: this worker has no use for its turn.
func yield(t *turn, _ int) { t.do(doYield{}) }

// keptEmpty: the place of a leader that ended while the role was paused stays
// empty until resume, or until somebody leads.
func (s *state) keptEmpty(w *worker) bool {
	return s.pause.on && w.led && s.led.term == 0 && w.pid == 0
}

func ownProcess(t *turn, i int) {
	w := &t.s.workers[i]
	w.pid, w.started = t.in.(inLaunched).pid, t.now.Wall
	t.emit(Event{Type: EventWorkerStarted, Worker: w.name, PID: w.pid})
	if w.lot == lotStarting && t.s.policy.Ready.IsSet() {
		t.do(doProbe{i, probeReady})
	}
	if w.lot == lotStopping {
		t.do(doSignal{index: i, sig: t.s.policy.stopSignal()})
	}
	t.watchLeader()
}

// disown ends a process that nobody wants any more.
func disown(t *turn, i int) {
	w := &t.s.workers[i]
	w.pid, w.started, w.lot = t.in.(inLaunched).pid, t.now.Wall, lotStopping
	t.emit(Event{Type: EventWorkerStarted, Worker: w.name, PID: w.pid})
	t.do(doKillGroup{i})
}

func becomeStandby(t *turn, i int) {
	w := &t.s.workers[i]
	w.lot, w.due, w.leading, w.why, w.drilled = lotStandby, 0, 0, "", 0
	t.becomeReady(i)
}

func becomeLeader(t *turn, i int) {
	w := &t.s.workers[i]
	w.lot, w.due, w.leading, w.why = lotLeader, 0, t.s.active.term, ""
	t.becomeReady(i)
}

func keepLeader(t *turn, i int) { t.s.workers[i].leading = t.s.active.term }

func becomeDraining(t *turn, i int) {
	w := &t.s.workers[i]
	w.lot, w.due, w.leading = lotDraining, 0, t.s.active.term
	t.becomeReady(i)
}

func becomeWarming(t *turn, i int) {
	w := &t.s.workers[i]
	w.lot, w.ready, w.readyAt, w.leading = lotStarting, false, 0, 0
	w.why = "is not ready any more"
	if by := w.startAt + int64(t.s.policy.StartTimeout); by > t.now.Mono {
		w.due = by
	}
}

func (t *turn) becomeReady(i int) {
	w := &t.s.workers[i]
	if w.ready {
		return
	}
	w.ready, w.readyAt = true, t.now.Mono
	t.emit(Event{Type: EventWorkerReady, Worker: w.name, PID: w.pid})
	t.watchHealth(i)
}

// bury begins the burial. The worker is nothing any more from here on, what
// is still to come may wait for a slow disk.
func bury(t *turn, i int) {
	w := &t.s.workers[i]
	w.told = w.lot == lotStopping && w.vitals.ended == "" || w.struck
	w.orderly = w.lot == lotStopping && w.vitals.ended == "" && t.s.phase != phaseRenewing // there the segment was lost
	followed := t.s.led.term != 0 && t.s.led.pid != uint32(w.pid)
	w.led = !followed && (w.lot == lotLeader || w.lot == lotDraining || t.s.owner.pid == uint32(w.pid))
	cause := ""
	switch {
	case w.vitals.ended != "":
		w.why = w.vitals.ended
		cause = w.why
	case w.struck:
		w.why = ""
		cause = "was killed by a failover that was asked for"
	case w.told:
		w.why = ""
		cause = "was told to end by SIG" + w.signal
	case w.lot != lotStarting || w.signal == "":
		w.why = "" // it ended by itself
	default:
		cause = w.why
	}
	if cause == "" && w.vitals.errno != 0 {
		cause = fmt.Sprintf("said ERRNO=%d", w.vitals.errno)
	}
	led := w.vitals.led || t.leads(w)
	w.lot, w.ready, w.leading, w.due, w.vitals.beatBy = lotEnded, false, 0, 0, 0
	t.do(doBury{index: i, cause: cause, ill: w.vitals.ended != "", led: led, uptime: time.Duration(t.now.Mono - w.startAt)})
}

func giveUpStart(t *turn, i int) {
	w := &t.s.workers[i]
	w.due = 0
	w.why = fmt.Sprintf("not ready within %v", t.s.policy.StartTimeout)
	if w.vitals.failure != "" {
		w.why += "; the last probe: " + w.vitals.failure
	}
	if !w.vitals.joined {
		w.outside = true
		w.why += diedApart
	}
	w.signal = "KILL"
	t.do(doKillGroup{i})
}

func beginStop(t *turn, i int) {
	w := &t.s.workers[i]
	w.vitals.led = t.leads(w)
	if s := &t.s; s.led.term != 0 && s.led.pid == uint32(w.pid) {
		s.spared, s.ordered = s.led.term, s.led.term
	}
	w.stoppedAs = w.lot
	w.wanted, w.lot = false, lotStopping
	w.due, w.signal = t.now.after(t.s.policy.StopTimeout), t.s.policy.StopSignal
	w.vitals.beatBy = 0
	if w.pid != 0 {
		t.do(doSignal{index: i, sig: t.s.policy.stopSignal()})
		if pid := uint32(w.pid); t.s.active.pid != pid || t.s.owner.pid == pid {
			// A process that somebody has stopped can only end if it goes on. Not a
			// leader that has lost the lease: it is fenced as it is.
			t.do(doSignal{index: i, sig: signalContinue})
		}
	}
}

// killNow ends the process group. It comes back every few seconds while the
// process does not die (it is stuck in the kernel), to say so.
func killNow(t *turn, i int) {
	w := &t.s.workers[i]
	switch {
	case w.lot != lotStopping:
		w.wanted, w.stoppedAs = false, w.lot
	case w.due != 0 && t.now.Mono >= w.due:
		then := "killed"
		if w.signal == "KILL" {
			then = "the kernel holds it"
		}
		w.why = fmt.Sprintf("pid %d (%v when it was told to end) did not end in time after SIG%s: %s", w.pid, w.stoppedAs, w.signal, then)
		t.emit(Event{Type: EventWarning, Worker: w.name, PID: w.pid, Text: w.why})
	}
	w.lot, w.signal = lotStopping, "KILL"
	w.due = t.now.after(killAgain)
	t.do(doKillGroup{i})
}

const killAgain = 5 * time.Second

func becomeStopped(t *turn, i int) {
	w := &t.s.workers[i]
	w.lot, w.wanted, w.due = lotStopped, false, 0
}

// leave follows the burial: the place is empty, and filled again if it should be.
func leave(t *turn, i int) {
	in := t.in.(inExited)
	w, p := &t.s.workers[i], t.s.policy
	w.past = append(slices.Clone(w.past), w.pid)
	if n := len(w.past); n > keptPIDs {
		w.past = w.past[n-keptPIDs:]
	}
	why := describeExit(in.exit)
	if w.why != "" {
		why = w.why
	}
	t.emit(Event{Type: EventWorkerExited, Worker: w.name, PID: w.pid, Exit: &in.exit, Text: w.why})
	t.do(doRelease{i})
	exit := in.exit
	exit.Cause = w.vitals.ended
	w.lastExit, w.pid = &exit, 0
	if t.s.lastEnd.pid == in.pid {
		t.s.lastEnd.exit = describeExit(exit)
	}
	if t.s.led.worker == i {
		t.s.led.worker = -1
	}
	switch {
	case !w.wanted || w.extra || t.s.phase >= phaseClosing:
		becomeStopped(t, i)
		if w.halted {
			w.why = fmt.Sprintf("was stopped; `standbyd start %s` starts it", w.name)
		}
	case w.told:
		launchNow(t, i)
	case w.vitals.ended != "":
		t.tryAgain(i, why, in.jitter)
	case endsWith(p.NoRestartOn, in.exit):
		t.rest(i, why+"; it is in no_restart_on")
	case endsWith(p.RestartOn, in.exit):
		t.tryAgain(i, why, in.jitter)
	case p.Restart == RestartNever, p.Restart == RestartOnFailure && in.exit.Code != nil && *in.exit.Code == 0:
		t.rest(i, fmt.Sprintf("%s; restart = %q", why, p.Restart))
	case w.drilled == in.pid:
		w.drilled = 0
		t.startAgain(i, p.RestartDelay, why)
	default:
		t.tryAgain(i, why, in.jitter)
	}
}

// rest stops a worker that the policy does not start again.
func (t *turn) rest(i int, why string) {
	becomeStopped(t, i)
	w := &t.s.workers[i]
	w.rests, w.why = true, fmt.Sprintf("%s; `standbyd start %s` starts it", why, w.name)
}

// restartLater follows a launch that made no process.
func restartLater(t *turn, i int) {
	in := t.in.(inUnlaunched)
	w := &t.s.workers[i]
	w.lastExit, w.orderly = &Exit{At: t.now.Wall, Error: in.err.Error()}, false
	t.tryAgain(i, in.err.Error(), in.jitter)
}

// tryAgain chooses between back-off and failed.
func (t *turn) tryAgain(i int, why string, jitter float64) {
	w, p := &t.s.workers[i], t.s.policy
	recent := w.ends[:0:0]
	for _, end := range w.ends {
		if end > t.now.Mono-int64(p.BurstPer) {
			recent = append(recent, end)
		}
	}
	w.ends = append(recent, t.now.Mono)
	if w.readyAt != 0 && t.now.Mono-w.readyAt >= int64(max(time.Second, w.pause)) {
		w.row = 0
	}
	w.row++
	w.readyAt = 0
	if len(w.ends) >= p.Burst {
		w.lot, w.ends, w.row, w.pause = lotFailed, nil, 0, 0
		w.due = t.now.after(p.CoolDown)
		w.why = fmt.Sprintf("ended %d times within %v, tried again at %s; last: %s", p.Burst, p.BurstPer, t.wall(w.due).Format("15:04:05"), why)
		t.emit(Event{Type: EventWorkerFailed, Worker: w.name, Text: w.why})
		return
	}
	t.startAgain(i, backOff(p.RestartDelay, p.RestartMaxDelay, w.row, jitter), why)
}

func (t *turn) startAgain(i int, pause time.Duration, why string) {
	w := &t.s.workers[i]
	w.pause = pause
	w.lot, w.due, w.why = lotBackoff, t.now.after(w.pause), why
	t.emit(Event{Type: EventWorkerBackoff, Worker: w.name, Text: fmt.Sprintf("next start in %v: %s", w.pause.Round(time.Millisecond), why)})
}

// backOff doubles first with each failure in a row, up to most, and takes up
// to a quarter off, so that workers that fell together do not rise together.
func backOff(first, most time.Duration, row int, jitter float64) time.Duration {
	d := first
	for range row - 1 {
		if d *= 2; d >= most {
			break
		}
	}
	if d > most {
		d = most
	}
	return d - time.Duration(float64(d)*jitter/4)
}

func describeExit(e Exit) string {
	switch {
	case e.Error != "":
		return e.Error
	case e.Cause != "":
		return "was ended: " + e.Cause
	case e.Signal != "":
		return "ended by signal " + e.Signal
	case e.Code != nil:
		if *e.Code == exitDrilled {
			return fmt.Sprintf("ended itself with status %d: a drill told it to", *e.Code)
		}
		if *e.Code == exitFenced {
			return fmt.Sprintf("ended itself with status %d: its lead did not stop in time, or it was fenced", *e.Code)
		}
		return fmt.Sprintf("exit status %d", *e.Code)
	}
	return "ended, status unknown"
}

// The statuses of a worker that package coord ended.
const (
	exitFenced  = 75
	exitDrilled = 70
)

// wall turns a mono time into one for people.
func (t *turn) wall(mono int64) time.Time {
	return t.now.Wall.Add(time.Duration(mono - t.now.Mono))
}
