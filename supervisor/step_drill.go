package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// drillState is a fault that we caused and whose effect is awaited. Its term
// is the mark of an end that is expected: what follows from it is no failure
// of the role (state.expects).
type drillState struct {
	term  uint64 // of the leader that was hit
	zero  int64  // mono ns just before the fault; 0 until it was caused
	due   int64  // mono ns by which another has to lead
	fault Fault
	index int
	pid   int
	hit   reply[DrillHit]
	reply reply[Record]
}

// expects: the end of that term's leadership is wanted, and was brought about
// by a drill.
func (s *state) expects(term uint64) bool { return s.drill != nil && s.drill.term == term }

// drill hits the leader, if somebody can take over.
func drill(t *turn, in input) {
	ask := in.(inDrill)
	s := &t.s
	if err := t.drillable(ask.fault, ask.force); err != nil {
		respond(t, ask.reply, Record{}, err)
		return
	}
	s.drill = &drillState{term: s.led.term, fault: ask.fault, index: s.led.worker, pid: int(s.led.pid), hit: ask.hit, reply: ask.reply,
		due: t.now.after(drillLimit(&s.policy.RoleConfig, ask.fault))}
	s.workers[s.led.worker].drilled = int(s.led.pid)
	t.do(doHit{s.led.worker, s.led.term, ask.fault})
}

// drillable says why the leader must not be hit now, nil if it may.
func (t *turn) drillable(fault Fault, force bool) error {
	s := &t.s
	switch {
	case s.led.worker < 0:
		return ErrNoLeader
	case s.drill != nil || s.change != nil:
		return ErrBusy
	}
	if fault == FaultHang {
		if err := t.hangable(); err != nil {
			return err
		}
	}
	if force {
		return nil
	}
	if why := t.nobodyMay(); why != "" {
		return wouldBeOutage(why + "; --force does it all the same")
	}
	if !t.standbyReady() {
		return fmt.Errorf("%w: %s", ErrNoStandby, t.whyNoStandby())
	}
	return nil
}

// wouldBeOutage is the refusal to take the leader from a role in which nobody
// may follow. It matches ErrNoStandby.
type wouldBeOutage string

func (e wouldBeOutage) Error() string      { return "nobody would take over: " + string(e) }
func (wouldBeOutage) Is(target error) bool { return target == ErrNoStandby }

// standsStill: nobody leads next by itself until an operator says so, or a
// time that was set for it has come.
func (s *state) standsStill() bool { return s.pause.on || s.control.mode == controlHeld }

// nobodyMay says why nobody may take over by itself, and what ends that; "" if
// somebody may.
func (t *turn) nobodyMay() string {
	s := &t.s
	switch {
	case s.control.mode != controlOpen:
		return fmt.Sprintf("the role is %s: %s", [...]string{"open", "waiting", "held", "closed"}[s.control.mode], t.reasonFor())
	case s.pause.on:
		return "the role is paused " + t.pauseEnd()
	}
	return ""
}

// hangable: a hang of the work would be noticed.
func (t *turn) hangable() error {
	s := &t.s
	if s.policy.ProgressTimeout <= 0 {
		return fmt.Errorf("%w: set progress_timeout in [role.%s], to longer than its leader ever takes for one step", ErrUnwatched, s.policy.Name)
	}
	for _, v := range s.seats {
		if v.pid == s.led.pid && v.watched {
			return nil
		}
	}
	return fmt.Errorf("%w: %s reports no progress: it should call Pulse as its work moves, or have a WithCheck (docs/worker-contract.md)",
		ErrUnwatched, s.nameOf(s.led.pid))
}

// standbyReady: somebody besides the leader is ready and willing.
func (t *turn) standbyReady() bool {
	return slices.ContainsFunc(t.s.seats, func(v seatView) bool { return t.s.able(v) && !v.bars && v.pid != t.s.led.pid })
}

// whyNoStandby says of each other worker why it could not take over.
func (t *turn) whyNoStandby() string {
	s := &t.s
	var each []string
	for i := range s.workers {
		if i == s.led.worker || s.workers[i].extra {
			continue
		}
		why := t.unable(i)
		if why == "" {
			why = "may not take over by itself (nofailover)"
		}
		each = append(each, s.workers[i].name+" "+why)
	}
	if len(each) == 0 {
		return "the role has one worker"
	}
	return strings.Join(each, "; ")
}

// drillSlack is how much longer a drill waits than the role's own limits say.
const drillSlack = 10 * time.Second

// drillLimit bounds the wait for another leader: for the fault to be found,
// the old leader fenced, a worker started if none is ready, the hooks told.
func drillLimit(c *RoleConfig, f Fault) time.Duration {
	d := time.Duration(c.Grace+1)*c.Tick + c.FenceTimeout + c.DrainTimeout + c.StartTimeout + drillSlack
	if f == FaultHang {
		d += c.ProgressTimeout
	}
	return d + 4*time.Duration(len(c.Hooks))*c.HookTimeout
}

func refuseDrill(t *turn, in input) {
	respond(t, in.(inDrill).reply, Record{}, t.refusal())
}

func (t *turn) noteHit(in inHit) {
	d := t.s.drill
	if d == nil || d.term != in.term {
		return
	}
	d.zero = in.zero
	if in.err != nil {
		t.giveUpDrill(in.err)
		return
	}
	respond(t, d.hit, DrillHit{Role: t.s.policy.Name, Fault: d.fault, Worker: t.s.nameOf(uint32(d.pid)), PID: d.pid,
		Term: d.term, Token: t.s.token(d.term), ZeroMono: d.zero}, nil)
}

// drilled ends a drill with the record of the takeover that it has caused, also
// of one by a leader that has ended since.
func (t *turn) drilled(rec Record) {
	d := t.s.drill
	if d == nil || rec.Reason != role.ReasonDrill {
		return
	}
	t.mend()
	respond(t, d.reply, rec, nil)
	t.s.drill = nil
}

// giveUpDrill ends a drill that is under way without its result.
func (t *turn) giveUpDrill(err error) {
	d := t.s.drill
	if d == nil {
		return
	}
	t.mend()
	if w := &t.s.workers[d.index]; w.drilled == d.pid && t.s.led.term == d.term {
		w.drilled = 0
	}
	if t.s.led.term != d.term {
		t.s.spared = d.term // whoever follows later, the end was ours
	}
	respond(t, d.reply, Record{}, err)
	t.s.drill = nil
}

// mend leaves nothing of the fault behind: a victim that lives goes on, and an
// order that was not obeyed is taken back.
func (t *turn) mend() {
	d := t.s.drill
	switch w := &t.s.workers[d.index]; {
	case d.fault == FaultStop && w.pid == d.pid && w.lot != lotEnded:
		// Under fence = "token" nobody ends the old leader: let it see its loss.
		t.do(doSignal{index: d.index, sig: signalContinue})
	case d.fault == FaultHang || d.fault == FaultExit:
		t.do(doUnorder{})
	}
}

// watchDrill ends a drill after which nobody leads by itself: in a role that is
// paused or held, or all of whose workers are down, there is nothing to wait for.
// Of a fault that leaves the process alive the time goes by in which it would
// have been found.
func (t *turn) watchDrill() {
	s := &t.s
	d := s.drill
	if d == nil || d.zero == 0 {
		return
	}
	if s.allDown() {
		t.giveUpDrill(fmt.Errorf("%w, and nobody will by itself: %s", ErrNoTakeover, t.whyAllDown()))
		return
	}
	if !s.standsStill() || s.owner.pid != 0 && s.owner.term > d.term {
		return
	}
	then := fmt.Sprintf("`standbyd failover %s` makes a standby lead", s.policy.Name)
	if s.led.term == d.term {
		found := d.zero + int64(time.Duration(s.policy.Grace+1)*s.policy.Tick)
		switch d.fault {
		case FaultHang:
			found += int64(s.policy.ProgressTimeout)
		case FaultStop:
			then = s.nameOf(s.led.pid) + " goes on"
		default:
			return // its process is about to end
		}
		if t.now.Mono < found {
			d.due = min(d.due, found)
			return
		}
	}
	t.giveUpDrill(fmt.Errorf("%w: %s; %s", ErrNoTakeover, t.nobodyMay(), then))
}

// drillDue gives up a drill that nobody has taken over from in time.
func (t *turn) drillDue() {
	s := &t.s
	t.watchDrill()
	if s.drill == nil || s.drill.due > t.now.Mono {
		return
	}
	d := s.drill
	limit := drillLimit(&s.policy.RoleConfig, d.fault)
	err := fmt.Errorf("%w within %v of the fault: the role is %s: %s", ErrNoTakeover, limit, s.shown(), s.why)
	if s.led.term == d.term && (d.fault == FaultHang || d.fault == FaultExit) {
		err = fmt.Errorf("%w: %s still leads %v after it was told to %s: it obeys only if it runs package coord of this version", ErrNoTakeover,
			s.nameOf(s.led.pid), limit, d.fault)
	}
	t.giveUpDrill(err)
}
