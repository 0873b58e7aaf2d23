package supervisor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// drilled asks a led role for a fault and returns the effects and both answers.
func drilled(c *script, in inDrill) (effects []effect, hit chan answer[DrillHit], record chan answer[Record]) {
	hit, record = make(chan answer[DrillHit], 1), make(chan answer[Record], 1)
	in.hit, in.reply = hit, record
	return c.answering(c.do(in)), hit, record
}

// answering gives the answers among the effects.
func (c *script) answering(effects []effect) []effect {
	for _, e := range effects {
		if a, ok := e.(doAnswer); ok {
			a.send()
		}
	}
	return effects
}

func refusalOf(t *testing.T, record chan answer[Record]) error {
	t.Helper()
	select {
	case a := <-record:
		return a.err
	default:
		return nil
	}
}

func TestDrillIsRefusedWithTheReason(t *testing.T) {
	for _, x := range []struct {
		name string
		in   inDrill
		set  func(*state)
		is   error
		says []string
	}{
		{"nobody is ready", inDrill{fault: FaultKill}, func(s *state) {
			s.seats[1].ready, s.seats[2].bars = false, true
			s.workers[1].lot, s.workers[1].ready, s.workers[1].pid, s.workers[1].why = lotBackoff, false, 0, "exit status 1"
		}, ErrNoStandby, []string{"kv-1 has no process (backoff): exit status 1", "kv-2 may not take over by itself (nofailover)"}},
		{"the role is held", inDrill{fault: FaultKill}, func(s *state) { s.control.mode = controlHeld }, ErrNoStandby, []string{"held", "standbyd ack kv"}},
		{"the role is paused", inDrill{fault: FaultKill}, func(s *state) { s.pause.on = true }, ErrNoStandby, []string{"paused", "standbyd resume kv", "--force"}},
		{"no progress limit", inDrill{fault: FaultHang, force: true}, func(s *state) { s.seats[0].watched = true }, ErrUnwatched, []string{"progress_timeout in [role.kv]"}},
		{"no progress is reported", inDrill{fault: FaultHang}, func(s *state) { s.policy.ProgressTimeout = time.Second }, ErrUnwatched, []string{"kv-0", "Pulse", "WithCheck"}},
		{"another one is under way", inDrill{fault: FaultKill, force: true}, func(s *state) { s.drill = &drillState{term: 7} }, ErrBusy, nil},
	} {
		c := newScript()
		lead(&c.s)
		x.set(&c.s)
		effects, _, record := drilled(c, x.in)
		err := refusalOf(t, record)
		if !errors.Is(err, x.is) {
			t.Errorf("%s: %v, want %v", x.name, err, x.is)
			continue
		}
		for _, want := range x.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q in it", x.name, err, want)
			}
		}
		for _, e := range effects {
			if _, ok := e.(doHit); ok {
				t.Errorf("%s: refused, and hit all the same", x.name)
			}
		}
	}
}

// TestDrillForced hits although nobody is ready.
func TestDrillForced(t *testing.T) {
	c := newScript()
	lead(&c.s)
	c.s.seats[1].ready, c.s.seats[2].ready = false, false
	effects, hit, _ := drilled(c, inDrill{fault: FaultExit, force: true})
	if len(effects) != 1 || effects[0] != (doHit{0, 7, FaultExit}) {
		t.Fatalf("%s", describe(effects))
	}
	c.answering(c.do(inHit{term: 7, zero: us(0)}))
	select {
	case h := <-hit:
		if h.value.Worker != "kv-0" || h.value.PID != 100 || h.value.ZeroMono != us(0) || h.value.Fault != FaultExit {
			t.Errorf("%+v", h)
		}
	default:
		t.Error("nobody was told of the hit")
	}
}

// TestDrilledEndIsNoFailure: the victim is started again after the first
// back-off, however often it was hit, and neither counts as failed.
func TestDrilledEndIsNoFailure(t *testing.T) {
	c := newScript()
	lead(&c.s)
	p := &c.s.policy.RoleConfig
	p.Hooks = nil
	w := &c.s.workers[0]
	for range p.Burst - 1 {
		w.ends = append(w.ends, c.now.Mono)
	}
	w.row = 6
	_, _, record := drilled(c, inDrill{fault: FaultKill})
	c.do(inHit{term: 7, zero: us(0)})
	c.do(inEnded{0, 100})
	old := ringView{term: 7, pid: 100, activated: us(-500), ended: us(10)}
	next := ringView{term: 8, pid: 101, reason: role.ReasonCrash, detected: us(14), claimed: us(20), fenced: us(25), activated: us(30)}
	c.answering(c.see(hold{101, 8}, hold{101, 8}, old, next))
	c.do(inExited{index: 0, pid: 100, exit: Exit{PID: 100, Signal: "SIGKILL"}})
	if w := &c.s.workers[0]; w.lot != lotBackoff || w.pause != p.RestartDelay || len(w.ends) != p.Burst-1 || w.row != 6 {
		t.Errorf("%s, next start after %v, %d ends, row %d", w.lot, w.pause, len(w.ends), w.row)
	}
	select {
	case a := <-record:
		r := a.value
		if r.Fault != FaultKill || r.Reason != role.ReasonDrill || value(r.EndedUS) != 10 || value(r.FencedUS) != 25 || value(r.ActiveUS) != 30 || r.ReturnedUS != nil {
			t.Errorf("%+v", r)
		}
	default:
		t.Error("the drill was not answered")
	}
	// Its next end is one again.
	c.pass(p.RestartDelay)
	c.do(inDue{})
	c.do(inTurn{0})
	c.do(inLaunched{0, 200})
	c.do(inEnded{0, 200})
	c.do(inExited{index: 0, pid: 200, exit: Exit{PID: 200, Signal: "SIGKILL"}})
	if w := &c.s.workers[0]; w.lot != lotFailed {
		t.Errorf("the burst's last end: %s", w.lot)
	}
}

// TestVictimOfADrillIsLetGo: whatever ends a drill, a stopped process goes on,
// and an order that was not obeyed is taken back.
func TestVictimOfADrillIsLetGo(t *testing.T) {
	for _, x := range []struct {
		name  string
		fault Fault
		end   func(*script) []effect
		want  effect
		is    error
	}{
		{"stopped, shut down", FaultStop, func(c *script) []effect { return c.do(inClose{}) }, doSignal{index: 0, sig: signalContinue}, ErrNotRunning},
		{"stopped, nobody took over", FaultStop, func(c *script) []effect {
			c.pass(drillLimit(&c.s.policy.RoleConfig, FaultStop))
			return c.do(inDue{})
		}, doSignal{index: 0, sig: signalContinue}, ErrNoTakeover},
		{"told to exit, did not", FaultExit, func(c *script) []effect {
			c.pass(drillLimit(&c.s.policy.RoleConfig, FaultExit))
			return c.do(inDue{})
		}, doUnorder{}, ErrNoTakeover},
		{"stopped, and the next one leads beside it", FaultStop, func(c *script) []effect {
			old := ringView{term: 7, pid: 100, activated: us(-500), ended: us(10)}
			return c.see(hold{101, 8}, hold{101, 8}, old, ringView{term: 8, pid: 101, reason: role.ReasonHang, activated: us(30)})
		}, doSignal{index: 0, sig: signalContinue}, nil},
		{"the signal could not be sent", FaultExit, func(c *script) []effect { return c.do(inHit{term: 7, err: ErrNoProcess}) }, doUnorder{}, ErrNoProcess},
	} {
		c := newScript()
		lead(&c.s)
		c.s.policy.Hooks = nil
		_, _, record := drilled(c, inDrill{fault: x.fault})
		c.do(inHit{term: 7, zero: us(0)})
		let := false
		for _, e := range c.answering(x.end(c)) {
			if d, ok := e.(doSignal); ok {
				d.reply = nil
				e = d
			}
			let = let || e == x.want
		}
		if !let {
			t.Errorf("%s: no %T: %s", x.name, x.want, c.out.String())
		}
		if err := refusalOf(t, record); !errors.Is(err, x.is) || err == nil != (x.is == nil) {
			t.Errorf("%s: %v, want %v", x.name, err, x.is)
		}
		if c.s.drill != nil {
			t.Errorf("%s: the drill goes on", x.name)
		}
	}
}
