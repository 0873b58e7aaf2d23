package supervisor

import (
	"fmt"
	"slices"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// The cells of roleTable.

func rIgnore(*turn, input) {}

// begin launches what is wanted, now that the hooks have started.
func begin(t *turn, in input) {
	noteHooked(t, in)
	t.startWanted()
	for i := range t.s.workers {
		w := &t.s.workers[i]
		if w.extra {
			t.word(i, wStop)
		} else if w.pid != 0 && w.lot == lotStarting && t.s.policy.Ready.IsSet() && !w.vitals.admitted {
			t.do(doProbe{i, probeReady})
		}
	}
}

func noteHooked(t *turn, in input) {
	t.s.hooked = true
	t.s.control.gate = in.(inHooked).gate
	if t.s.phase < phaseClosing {
		t.setControl()
	}
	t.tellAnew()
	t.watchClaim()
}

// startWanted launches every worker of the config that has no process and
// waits for nothing but that.
func (t *turn) startWanted() {
	for i := range t.s.workers {
		w := &t.s.workers[i]
		if !w.extra && !w.halted && w.pid == 0 && w.due == 0 && (w.lot == lotBackoff || w.lot == lotStopped && w.lastExit == nil) {
			t.word(i, wStart)
		}
	}
}

// useSockets follows a try to have all listeners.
func useSockets(t *turn, in input) {
	got := in.(inSockets)
	t.s.binding = false
	if got.ok {
		t.s.sockets, t.s.socketsS = true, 0
		if t.s.hooked && t.s.phase != phaseRenewing {
			t.startWanted()
		}
		return
	}
	if got.err != nil {
		t.warn("%v", got.err)
		if t.s.processes() == 0 {
			t.s.socketsS = t.now.after(socketRetry)
		}
	}
}

const socketRetry = time.Second

// renew ends everything that uses the lost segment; settle asks for a new one
// when that is done.
func renew(t *turn, in input) {
	t.warn("segment %s cannot be used any more, all workers are started anew: %v", t.s.segment, in.(inLost).err)
	t.loseLeader(role.ReasonCrash)
	t.giveUpDrill(in.(inLost).err)
	t.s.phase, t.s.why = phaseRenewing, "the segment was lost; waits for the end of the workers that used it"
	t.endChange(in.(inLost).err)
	t.s.owner, t.s.active, t.s.asking = hold{}, hold{}, 0
	t.s.retryAt, t.s.renewing = 0, false
	for i := range t.s.workers {
		w := &t.s.workers[i]
		wanted := w.wanted
		if w.pid != 0 {
			t.word(i, wKill)
		}
		w.wanted = wanted
	}
}

func resume(t *turn, in input) {
	got := in.(inRenewed)
	s := &t.s
	s.renewing = false
	if got.err != nil {
		s.why = "no new segment: " + got.err.Error()
		t.warn("%s", s.why)
		s.retryAt = t.now.after(socketRetry)
		return
	}
	s.generation, s.segment = got.generation, got.segment
	s.recorded, s.counted, s.ledTerms, s.ring, s.seats = 0, 0, [2]uint64{}, nil, nil
	s.control = controlWord{gate: s.control.gate, nominee: -1}
	s.phase = phaseStarting
	t.setControl()
	if s.hooked {
		t.startWanted()
	}
}

// hookDone follows one job of the hook queue.
func hookDone(t *turn, in input) {
	got := in.(inJob)
	s := &t.s
	if s.jobs > 0 {
		s.jobs--
	}
	term := got.t.Token.Term()
	switch got.kind {
	case momentPromote:
		if s.pending != nil && s.pending.term == term && !s.pending.done {
			s.pending.done = true
			if got.err == nil {
				s.pending.hooks = got.at
			}
		}
		if got.t.Token != s.told.Token {
			return // it has ended meanwhile: the demote is on its way
		}
		t.promoted(got)
	case momentPrePromote:
		if s.asking == term {
			s.asking = 0
		}
		if s.owner.term != term || s.owner.pid == 0 || s.phase > phaseRenewing {
			return
		}
		if got.err != nil {
			t.depose(term, int(s.owner.pid), got.err)
			return
		}
		s.control.granted = term
		t.setControl()
	case momentStop:
		if s.rehooking && s.phase < phaseEnding {
			t.hireAnew()
			return
		}
		t.becomeStoppedRole()
	}
}

// promoted judges the end of an OnPromote job for the present leadership.
func (t *turn) promoted(got inJob) {
	s := &t.s
	if got.err == nil {
		s.failing, s.retryAt, s.retries, s.refused = nil, 0, 0, refusals{}
		t.job(momentAnnounce, got.t, nil)
		return
	}
	if s.policy.HookFailure == "demote" {
		if !t.byHand(got.t.Token.Term()) {
			s.failovers = append(s.failovers, t.now.Mono)
		}
		t.depose(got.t.Token.Term(), got.t.PID, got.err)
		return
	}
	if s.phase >= phaseClosing {
		return // it is about to be demoted
	}
	s.failing = got.failed
	s.retries++
	s.retryAt = t.now.after(backOff(time.Second, time.Minute, s.retries, 0))
}

// refusals are promotions that hooks did not let stand, in a row.
type refusals struct {
	row  int
	why  string // the last one: which hook, and its error
	held bool   // the role is held because of them
}

// refusedFirst and refusedMost are the back-off of a role whose hooks refuse
// one worker after the other.
const (
	refusedFirst = 500 * time.Millisecond
	refusedMost  = 30 * time.Second
)

// depose asks a term to resign and sends its worker to the end of the row. The
// next one is tried at once, until each had its turn; then the role waits
// longer and longer. Leaders that had to resign spend the failover budget, as
// those that die do; candidates that never led do not.
func (t *turn) depose(term uint64, pid int, cause error) {
	s := &t.s
	s.control.resign = term
	s.refused.row++
	s.refused.why = cause.Error()
	if s.change != nil && s.change.term < term {
		s.change.trouble = fmt.Sprintf("%s had to give the lease back: %v", s.nameOf(uint32(pid)), cause)
	}
	if i := s.byPID(uint32(pid)); i >= 0 {
		s.workers[i].barred = t.now.after(s.policy.Probation)
	}
	t.spendable()
	rounds := s.refused.row - len(s.workers) + 1
	switch {
	case s.control.mode > controlPaused:
	case len(s.failovers) >= s.policy.Failovers:
		s.refused.held = true
		s.control.mode, s.control.nominee, s.control.until = controlHeld, -1, t.now.after(s.policy.CoolDown)
	case rounds > 0 || t.candidate() < 0:
		s.control.mode, s.control.nominee = controlPaused, -1
		s.control.until = t.now.after(backOff(refusedFirst, refusedMost, max(rounds, 1), 0))
	default:
		t.nominate()
	}
	t.setControl()
	t.warn("%s (pid %d) has to give term %d back: %s", s.nameOf(uint32(pid)), pid, term, s.refused.why)
	if s.refused.held {
		t.warn("%s", t.reasonFor())
	}
}

// nominate lets the next candidate go before all others, if there is one.
func (t *turn) nominate() {
	s := &t.s
	s.control.mode, s.control.nominee, s.control.until = controlOpen, -1, 0
	if seat := t.candidate(); seat >= 0 {
		s.control.nominee, s.control.until = seat, t.now.after(s.policy.Probation)
	}
}

func replayHook(t *turn, in input) {
	if t.s.told.Token != 0 {
		t.job(momentPromote, t.s.told, []int{in.(inReplay).hook})
	}
}

func roleDue(t *turn, _ input) {
	s := &t.s
	if s.control.mode == controlHeld && s.control.until <= t.now.Mono {
		t.free()
	}
	if s.control.mode == controlPaused && s.control.until <= t.now.Mono {
		t.nominate()
		t.setControl()
	}
	t.pauseDue()
	if s.retryAt != 0 && s.retryAt <= t.now.Mono {
		s.retryAt = 0
		if len(s.failing) > 0 && s.told.Token != 0 {
			t.job(momentPromote, s.told, slices.Clone(s.failing))
		}
	}
	t.drillDue()
	if s.socketsS != 0 && s.socketsS <= t.now.Mono {
		s.socketsS = 0
		if s.processes() > 0 {
			t.do(doFetchSockets{})
		}
	}
}

func (t *turn) free() {
	t.s.failovers, t.s.fencing, t.s.refused = nil, fencing{}, refusals{}
	t.s.control.mode, t.s.control.until = controlOpen, 0
	t.setControl()
}

func ack(t *turn, in input) {
	to := in.(inAck).reply
	if t.s.control.mode != controlHeld {
		respond(t, to, struct{}{}, ErrNotHeld)
		return
	}
	t.free()
	respond(t, to, struct{}{}, nil)
}

func refuseAck(t *turn, in input) { respond(t, in.(inAck).reply, struct{}{}, ErrNotHeld) }

func (t *turn) signal(in inSignal) {
	i := in.index
	if i < 0 {
		if i = t.s.led.worker; i < 0 {
			respond(t, in.reply, signalled{}, ErrNoLeader)
			return
		}
	}
	if i >= len(t.s.workers) || t.s.workers[i].pid == 0 || t.s.workers[i].lot == lotEnded {
		respond(t, in.reply, signalled{}, ErrNoProcess)
		return
	}
	if s := &t.s; s.led.worker == i && endsLead(in.sig) {
		s.spared = s.led.term
	}
	t.do(doSignal{i, in.sig, in.reply})
}

// beginClose: nobody claims any more, the leader drains.
func beginClose(t *turn, _ input) {
	t.close()
	t.s.phase, t.s.why = phaseClosing, "is being shut down"
	t.s.drainBy = t.now.after(t.s.policy.DrainTimeout + drainSlack)
}

func (t *turn) close() {
	s := &t.s
	s.control.mode, s.control.until, s.control.nominee, s.control.planned = controlClosed, 0, -1, false
	s.failing, s.retryAt, s.socketsS = nil, 0, 0
	t.s.pause = pausing{}
	t.setControl()
	t.giveUpDrill(ErrNotRunning)
	t.endChange(ErrNotRunning)
	t.endRoll(ErrNotRunning)
	t.s.reopening = false
}

// drainSlack lets a worker that ends itself at its drain limit tell so.
const drainSlack = 250 * time.Millisecond

func drainDue(t *turn, _ input) {
	s := &t.s
	if s.drainBy == 0 || s.drainBy > t.now.Mono {
		return
	}
	s.drainBy = 0
	for i := range s.workers {
		pid := uint32(s.workers[i].pid)
		if pid != 0 && (pid == s.active.pid || pid == s.owner.pid) && s.workers[i].lot != lotEnded {
			t.warn("%s (pid %d) did not stop leading within %v: killed", s.workers[i].name, s.workers[i].pid, s.policy.DrainTimeout)
			t.word(i, wKill)
		}
	}
}

// skipDrain: without a segment nobody can drain in order.
func skipDrain(t *turn, in input) {
	t.warn("segment %s cannot be used any more: %v", t.s.segment, in.(inLost).err)
	t.s.owner, t.s.active = hold{}, hold{}
}

func (t *turn) beginStopping() {
	t.s.phase, t.s.drainBy = phaseStopping, 0
	for i := range t.s.workers {
		t.word(i, wStop)
	}
}

func beginKill(t *turn, _ input) {
	t.close()
	t.s.killed, t.s.drainBy = true, 0
	if t.s.phase < phaseStopping {
		t.s.phase, t.s.why = phaseStopping, "is being killed"
	}
	for i := range t.s.workers {
		t.word(i, wKill)
	}
	t.s.led = leadership{worker: -1}
}

func (t *turn) becomeStoppedRole() {
	t.s.phase, t.s.why = phaseStopped, ""
	t.do(doClear{})
}
