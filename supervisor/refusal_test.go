package supervisor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// TestPromotionsThatFailHoldTheRole: with on_hook_failure = "demote" a hook that
// always fails spends the budget, and the status says which, why and what to do.
func TestPromotionsThatFailHoldTheRole(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].HookFailure, c.Roles[0].Failovers = "demote", 4
	h := &recorder{}
	h.on = func(moment string, _ role.Transition) error {
		if moment == "promote" {
			return errors.New("no such table")
		}
		return nil
	}
	c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: h}}
	w := start(t, c)
	held := w.until("the role is held", func(r RoleStatus) bool { return r.State == RoleHeld })
	for _, want := range []string{"4 promotions", "on-promote of rec: no such table", "standbyd ack kv"} {
		if !strings.Contains(held.Why, want) {
			t.Errorf("why: %q has no %q", held.Why, want)
		}
	}
	if held.Term > 4 {
		t.Errorf("term %d", held.Term)
	}
	if err := w.sup.Ack(t.Context(), "kv"); err != nil {
		t.Fatal(err)
	}
	w.until("it is tried again after the ack", func(r RoleStatus) bool { return r.Term > held.Term })
}

// TestVetoesBackOff: each candidate is asked once without a pause, then the
// pauses double; one consent ends the row. Vetoes alone never hold the role.
func TestVetoesBackOff(t *testing.T) {
	c := newScript()
	c.s.control.gate = true
	veto := func(term uint64) time.Duration {
		h := hold{uint32(100 + term%3), term}
		c.see(h, hold{0, 0})
		c.do(inJob{kind: momentPrePromote, t: role.Transition{Token: c.s.token(term), PID: int(h.pid)}, err: errors.New("pre-promote of a: too old")})
		c.see(hold{0, term}, hold{0, 0})
		if c.s.control.resign != term {
			t.Fatalf("term %d was not asked to resign", term)
		}
		if c.s.control.mode == controlOpen {
			return 0
		}
		if c.s.control.mode != controlPaused || !strings.Contains(c.s.why, "pre-promote of a: too old") {
			t.Fatalf("mode %d: %s", c.s.control.mode, c.s.why)
		}
		pause := time.Duration(c.s.control.until - c.now.Mono)
		if due := c.s.nextDue(); due == 0 || due > c.s.control.until {
			t.Fatalf("nobody ends the pause: %d", due)
		}
		c.pass(pause)
		c.do(inDue{})
		if c.s.control.mode != controlOpen {
			t.Fatal("the pause does not end")
		}
		return pause
	}
	want := []time.Duration{0, 0, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000}
	for i, ms := range want {
		if got := veto(uint64(i + 1)); got != ms*time.Millisecond {
			t.Errorf("pause %d is %v", i+1, got)
		}
	}
	term := uint64(len(want) + 1)
	h := hold{100, term}
	c.see(h, hold{0, 0})
	c.do(inJob{kind: momentPrePromote, t: role.Transition{Token: c.s.token(term), PID: 100}})
	c.see(h, h)
	c.do(inJob{kind: momentPromote, t: c.s.told, at: c.now.Mono})
	if c.s.refused.row != 0 || c.s.phase != phaseLed || len(c.s.failovers) != 0 {
		t.Errorf("%+v, %s, %d failovers", c.s.refused, c.s.phase, len(c.s.failovers))
	}
}

// TestStandbysInTheirBackOff: status does not promise a takeover while none of
// the ready standbys would claim.
func TestStandbysInTheirBackOff(t *testing.T) {
	c := newScript()
	c.s.policy.Hooks = nil
	for term := uint64(1); term <= 3; term++ {
		h := hold{100, term}
		c.see(h, h, ringView{term: term, pid: 100, reason: role.ReasonStepDown, activated: c.now.Mono})
		c.pass(time.Millisecond)
		c.see(hold{0, term}, hold{0, term})
	}
	if !strings.Contains(c.s.why, "about to take over") {
		t.Errorf("at once: %s", c.s.why)
	}
	c.pass(idleWait)
	c.see(hold{0, 3}, hold{0, 3})
	if !strings.Contains(c.s.why, "back-off") || !strings.Contains(c.s.why, "3 leaderships") {
		t.Errorf("later: %s", c.s.why)
	}
	c.s.seats[0].racing = true
	c.see(hold{0, 3}, hold{0, 3})
	if !strings.Contains(c.s.why, "about to take over") {
		t.Errorf("one is in the race: %s", c.s.why)
	}
}

func TestBackOffSaysWhenItEnds(t *testing.T) {
	c := newConfig(t, "exit")
	c.Roles[0].RestartDelay, c.Roles[0].RestartMaxDelay = time.Minute, time.Minute
	w := start(t, c)
	r := w.until("a worker is in back-off", func(r RoleStatus) bool { return r.Workers[0].State == WorkerBackoff && r.Workers[0].LastExit != nil })
	if why := r.Workers[0].Why; !strings.HasPrefix(why, "next start in ") || !strings.HasSuffix(why, "s: exit status 3") {
		t.Errorf("why: %q", why)
	}
}
