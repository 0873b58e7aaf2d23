package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// led is a script in which kv-0 leads in term 7, since a while, without hooks.
func ledScript() *script {
	c := newScript()
	c.s.policy.Hooks = nil
	lead(&c.s)
	c.s.ring[0].activated = us(-3600_000_000)
	return c
}

// asked is a request whose answers are read.
type asked struct {
	t  *testing.T
	to chan answer[Record]
}

func newAsked(t *testing.T) asked { return asked{t, make(chan answer[Record], 2)} }

func (a asked) answers(effects []effect) *answer[Record] {
	a.t.Helper()
	for _, e := range effects {
		if e, ok := e.(doAnswer); ok {
			e.send()
		}
	}
	switch len(a.to) {
	case 0:
		return nil
	case 1:
		got := <-a.to
		return &got
	}
	a.t.Fatal("two answers")
	return nil
}

func (c *script) vacate(term uint64) []effect {
	return c.see(hold{0, term}, hold{0, term}, c.s.ring...)
}

func (c *script) follow(pid uint32, term uint64, reason role.Reason) []effect {
	ring := append(slices.Clone(c.s.ring), ringView{term: term, pid: pid, reason: reason, claimed: c.now.Mono, activated: c.now.Mono})
	return c.see(hold{pid, term}, hold{pid, term}, ring...)
}

// TestSwitchoverStory: asked for, drained, handed over, told. What the segment
// says at each step.
func TestSwitchoverStory(t *testing.T) {
	c, a := ledScript(), newAsked(t)
	c.s.seats[2].priority = 4
	effects := c.do(inSwitchover{to: -1, reply: a.to})
	if got := a.answers(effects); got != nil {
		t.Fatalf("answered at once: %+v", got)
	}
	if w := c.s.controlNow(); c.s.phase != phaseSwitching || w.nominee != 3 || w.resign != 7 || !w.planned || w.mode != controlOpen || w.until != c.s.change.by {
		t.Errorf("%s, %+v", c.s.phase, w)
	}
	c.see(hold{100, 7}, hold{100, 7})
	if c.s.workers[0].lot != lotDraining {
		t.Errorf("kv-0 is %s", c.s.workers[0].lot)
	}
	if got := a.answers(c.vacate(7)); got != nil || c.s.phase != phaseSwitching {
		t.Errorf("%s, %+v", c.s.phase, got)
	}
	got := a.answers(c.follow(102, 8, role.ReasonSwitchover))
	if got == nil || got.err != nil || got.value.Reason != role.ReasonSwitchover || got.value.From != "kv-0" || got.value.To != "kv-2" {
		t.Errorf("%+v", got)
	}
	if w := c.s.controlNow(); c.s.phase != phaseLed || w.nominee != -1 || w.planned || w.until != 0 || c.s.change != nil || len(c.s.failovers) != 0 {
		t.Errorf("%s, %+v, %+v", c.s.phase, w, c.s.change)
	}
}

// TestChangeThatCannotBe is refused with the reason, and nothing has changed.
func TestChangeThatCannotBe(t *testing.T) {
	for _, row := range []struct {
		name   string
		to     int
		before func(*state)
		err    error
		text   string
	}{
		{"nobody is ready", -1, func(s *state) { s.seats[1].ready = false; s.seats[2].bars = true }, ErrNoStandby, "kv-1 is not ready (standby); kv-2 may not be chosen (nofailover), only named: --to kv-2"},
		{"a stopped one", 1, func(s *state) { s.epoch, s.seats[1].beat = 100, 80 }, ErrNoStandby, "kv-1 has not beaten for 20 ticks"},
		{"the leader", 0, func(*state) {}, ErrNoStandby, "leads already"},
		{"one without a process", 2, func(s *state) { s.workers[2].pid, s.workers[2].lot, s.workers[2].why = 0, lotFailed, "exit status 1" }, ErrNoStandby, "kv-2 has no process (failed): exit status 1"},
		{"one that warms up", 2, func(s *state) { s.seats = s.seats[:2] }, ErrNoStandby, "kv-2 has not joined yet"},
		{"a drill", -1, func(s *state) { s.drill = &drillState{term: 7} }, ErrBusy, ""},
		{"a change", -1, func(s *state) { s.change = &changeState{term: 6, by: us(1_000_000_000)} }, ErrBusy, ""},
	} {
		for _, forced := range []bool{false, true} {
			c, a := ledScript(), newAsked(t)
			row.before(&c.s)
			var in input = inSwitchover{to: row.to, reply: a.to}
			if forced {
				in = inFailover{to: row.to, reply: a.to}
			}
			effects := c.do(in)
			got := a.answers(effects)
			if got == nil || !errors.Is(got.err, row.err) || !strings.Contains(got.err.Error(), row.text) {
				t.Errorf("%s, forced %v: %+v", row.name, forced, got)
			}
			if len(effects) != 1 || c.s.phase != phaseLed || c.s.control.nominee != -1 || c.s.control.resign != 0 {
				t.Errorf("%s, forced %v: %s%s", row.name, forced, c.s.phase, describe(effects))
			}
			ranked := make(chan answer[Ranking], 1)
			for _, e := range c.do(inRank{row.to, ranked}) {
				e.(doAnswer).send()
			}
			if r := (<-ranked).value; r.To != "" || !strings.Contains(r.Refused, row.text) {
				t.Errorf("%s: dry run %+v", row.name, r)
			}
		}
	}
}

// TestNomineeIsLost: another follows, and who was asked for by name is missed.
func TestNomineeIsLost(t *testing.T) {
	c, a := ledScript(), newAsked(t)
	c.do(inSwitchover{to: 1, reply: a.to})
	c.vacate(7)
	c.do(inEnded{1, 101})
	if w := c.s.controlNow(); w.nominee != 3 {
		t.Fatalf("%+v", w)
	}
	got := a.answers(c.follow(102, 8, role.ReasonSwitchover))
	if got == nil || got.err == nil || got.value.To != "kv-2" || !strings.Contains(got.err.Error(), "kv-1 was lost before it could lead; kv-2 leads") {
		t.Errorf("%+v", got)
	}

	// The only one: the old leader may lead again.
	c, a = ledScript(), newAsked(t)
	c.s.seats = c.s.seats[:2]
	c.do(inSwitchover{to: -1, reply: a.to})
	c.vacate(7)
	c.s.seats = slices.Clone(c.s.seats)
	c.s.seats[1].ready = false
	c.vacate(7)
	if w := c.s.controlNow(); w.nominee != 1 { // kv-0 is a standby by now
		t.Fatalf("%+v", w)
	}
	got = a.answers(c.follow(100, 8, role.ReasonStepDown))
	if got == nil || got.err == nil || !strings.Contains(got.err.Error(), "kv-0 leads") {
		t.Errorf("%+v", got)
	}
}

// TestChangeHasAnEnd: what takes too long is given up, and said.
func TestChangeHasAnEnd(t *testing.T) {
	c, a := ledScript(), newAsked(t)
	c.do(inSwitchover{to: -1, reply: a.to})
	due := c.s.nextDue()
	if due != c.s.change.by {
		t.Fatalf("nobody ends it: %d", due)
	}
	c.pass(time.Duration(due - c.now.Mono))
	got := a.answers(c.do(inDue{}))
	if got == nil || !errors.Is(got.err, ErrTimedOut) || c.s.change != nil || c.s.control.nominee != -1 || c.s.phase != phaseLed {
		t.Errorf("%+v, %s, %+v", got, c.s.phase, c.s.control)
	}
}

// TestFailoverInsteadOfASwitchover: a drain that takes too long is cut short.
func TestFailoverInsteadOfASwitchover(t *testing.T) {
	c, first, second := ledScript(), newAsked(t), newAsked(t)
	c.do(inSwitchover{to: -1, reply: first.to})
	effects := c.do(inFailover{to: 2, reply: second.to})
	if got := first.answers(effects); got == nil || !errors.Is(got.err, ErrBusy) {
		t.Errorf("the switchover got %+v", got)
	}
	if text := describe(effects); !strings.Contains(text, "nominee=3") || !strings.Contains(text, "kill group 0") || strings.Contains(text, "nominee=-1") {
		t.Errorf("%s", text)
	}
	c.do(inEnded{0, 100})
	c.vacate(7)
	got := second.answers(c.follow(102, 8, role.ReasonCrash))
	if got == nil || got.err != nil || got.value.Reason != role.ReasonForced || len(c.s.failovers) != 0 || c.s.workers[0].barred != 0 {
		t.Errorf("%+v, %d failovers", got, len(c.s.failovers))
	}
	// It is started again at once.
	if text := describe(c.do(inExited{index: 0, pid: 100, exit: Exit{PID: 100, Signal: "SIGKILL"}})); !strings.Contains(text, "queue 0") {
		t.Errorf("%s", text)
	}
}

// TestFailoverOfATakeover: whoever holds the lease already is not disturbed.
func TestFailoverOfATakeover(t *testing.T) {
	c, first, second := ledScript(), newAsked(t), newAsked(t)
	c.do(inSwitchover{to: -1, reply: first.to})
	c.vacate(7)
	c.see(hold{101, 8}, hold{0, 7}, c.s.ring...)
	if got := second.answers(c.do(inFailover{to: 2, reply: second.to})); got == nil || !errors.Is(got.err, ErrBusy) {
		t.Errorf("%+v", got)
	}
	if got := first.answers(c.follow(101, 8, role.ReasonSwitchover)); got == nil || got.err != nil {
		t.Errorf("%+v", got)
	}
}

// TestFailoverWithoutALeader names a standby, also in a paused or held role,
// and leaves both as they are.
func TestFailoverWithoutALeader(t *testing.T) {
	for _, row := range []phase{phaseStarting, phaseVacant, phasePaused, phaseHeld} {
		c, a := newScript(), newAsked(t)
		c.s = roleIn(row)
		c.s.policy.Hooks = nil
		c.s.owner, c.s.active = hold{0, 7}, hold{0, 7}
		c.s.seats = slices.Clone(c.s.seats)
		c.s.seats[1].bars = true
		mode := c.s.controlNow().mode
		c.do(inFailover{to: 1, reply: a.to})
		if w := c.s.controlNow(); w.nominee != 2 || w.mode != mode {
			t.Errorf("%s: %+v", row, w)
		}
		got := a.answers(c.follow(101, 8, role.ReasonStepDown))
		if got == nil || got.err != nil || got.value.To != "kv-1" || got.value.Reason != role.ReasonForced {
			t.Errorf("%s: %+v", row, got)
		}
		if w := c.s.controlNow(); w.nominee != -1 || w.mode != mode || c.s.phase != phaseLed {
			t.Errorf("%s: afterwards %s, %+v", row, c.s.phase, w)
		}
	}
}

// TestPauseInTheControlWord: what forbids more stays, and comes back when the
// pause ends.
func TestPauseInTheControlWord(t *testing.T) {
	c := ledScript()
	c.do(inPause{length: time.Minute})
	if w := c.s.controlNow(); w.mode != controlPaused || !w.byHand || w.until != c.now.after(time.Minute) || c.s.nextDue() != w.until {
		t.Errorf("paused: %+v", w)
	}
	c.s.control.mode, c.s.control.until = controlHeld, c.now.after(time.Hour)
	if w := c.s.controlNow(); w.mode != controlHeld || !w.byHand || w.until != c.now.after(time.Hour) {
		t.Errorf("held, and paused for less: %+v", w)
	}
	c.do(inPause{})
	if w := c.s.controlNow(); w.mode != controlHeld || w.until != 0 {
		t.Errorf("held, and paused without end: %+v", w)
	}
	c.do(inAck{})
	if w := c.s.controlNow(); w.mode != controlPaused || w.until != 0 || !w.byHand {
		t.Errorf("not held any more: %+v", w)
	}
	c.do(inResume{})
	if w := c.s.controlNow(); w.mode != controlOpen || w.byHand || w.until != 0 {
		t.Errorf("resumed: %+v", w)
	}
	c.do(inPause{length: time.Second})
	c.pass(time.Second)
	c.do(inDue{})
	if c.s.pause.on || c.s.controlNow().mode != controlOpen {
		t.Errorf("its time is over: %+v", c.s.controlNow())
	}
}

// TestPausedRoleKeepsItsLeadersPlaceEmpty, and fills all others, until somebody
// leads or the pause ends.
func TestPausedRoleKeepsItsLeadersPlaceEmpty(t *testing.T) {
	for _, end := range []string{"resume", "another leads"} {
		c := ledScript()
		c.do(inPause{})
		die := func(i, pid int) {
			c.do(inEnded{i, pid})
			if i == 0 {
				c.vacate(7)
			}
			c.do(inExited{index: i, pid: pid, exit: Exit{PID: pid, Signal: "SIGKILL"}})
		}
		die(0, 100)
		die(1, 101)
		c.pass(time.Minute)
		text := describe(c.do(inDue{}))
		if strings.Contains(text, "queue 0") || !strings.Contains(text, "queue 1") || c.s.phase != phasePaused {
			t.Fatalf("%s: %s: %s", end, c.s.phase, text)
		}
		if w := c.s.workers[0]; w.lot != lotBackoff || !strings.Contains(w.why, "standbyd resume kv") {
			t.Errorf("%s: %s, %s", end, w.lot, w.why)
		}
		if end == "resume" {
			text = describe(c.do(inResume{}))
		} else {
			c.do(inFailover{to: -1})
			text = describe(c.follow(102, 8, role.ReasonCrash))
		}
		if !strings.Contains(text, "queue 0") {
			t.Errorf("%s: %s", end, text)
		}
	}
}

// TestManualVerbsSpendNothing: only what happens by itself spends the budget,
// and bars a worker from going first.
func TestManualVerbsSpendNothing(t *testing.T) {
	for _, row := range []struct {
		name  string
		do    func(c *script)
		spent int
	}{
		{"crash", func(*script) {}, 1},
		{"drill", func(c *script) { c.do(inDrill{fault: "kill"}); c.do(inHit{term: 7, zero: c.now.Mono}) }, 0},
		{"failover", func(c *script) { c.do(inFailover{to: -1}) }, 0},
		{"switchover whose leader died", func(c *script) { c.do(inSwitchover{to: -1}) }, 0},
		{"signal KILL", func(c *script) { c.do(inSignal{index: -1, sig: syscall.SIGKILL}) }, 0},
		{"signal HUP", func(c *script) { c.do(inSignal{index: -1, sig: syscall.SIGHUP}) }, 1},
		{"signal to another", func(c *script) { c.do(inSignal{index: 1, sig: syscall.SIGKILL}) }, 1},
	} {
		c := ledScript()
		c.s.ring[0].activated = c.now.Mono // within its probation
		row.do(c)
		c.do(inEnded{0, 100})
		c.vacate(7)
		c.follow(102, 8, role.ReasonCrash)
		if got := len(c.s.failovers); got != row.spent || (c.s.workers[0].barred != 0) != (row.spent != 0) {
			t.Errorf("%s: %d spent, barred %d", row.name, got, c.s.workers[0].barred)
		}
		// The next failure is one.
		c.do(inExited{index: 0, pid: 100, exit: Exit{PID: 100}})
		c.do(inEnded{2, 102})
		c.vacate(8)
		c.follow(101, 9, role.ReasonCrash)
		if got := len(c.s.failovers); got != row.spent+1 {
			t.Errorf("%s: %d spent after another crash", row.name, got)
		}
	}
}

// TestProbation: who fails soon after its promotion goes last whatever its
// priority, in the segment too, and only for a while.
func TestProbation(t *testing.T) {
	for _, row := range []struct {
		led    time.Duration
		barred bool
	}{{time.Second, true}, {time.Hour, false}} {
		c := ledScript()
		c.s.ring[0].activated = c.now.Mono - int64(row.led)
		// It hangs, under a fence that kills nobody: it stays.
		effects := c.follow(101, 8, role.ReasonHang)
		want := fmt.Sprintf("last 1 pid 100 %v", row.barred)
		if got := strings.Contains(describe(effects), want); got != row.barred {
			t.Errorf("after %v: %s", row.led, describe(effects))
		}
		c.s.seats = slices.Clone(c.s.seats)
		c.s.seats[0].priority, c.s.seats[0].last = 9, row.barred
		var names []string
		turn := &turn{s: c.s, now: c.now}
		for _, v := range turn.ranked() {
			names = append(names, c.s.nameOf(v.pid))
		}
		ranked := make(chan answer[Ranking], 1)
		c.answering(c.do(inRank{-1, ranked}))
		if why := (<-ranked).value.Workers[0].Why; row.barred && why != "goes after kv-2: failed as leader, so it is tried last until 03:04:15" {
			t.Errorf("dry run: %s", why)
		}
		if got := strings.Join(names, " "); (got == "kv-2 kv-0") != row.barred || (got == "kv-0 kv-2") == row.barred {
			t.Errorf("after %v: %s", row.led, got)
		}
		if !row.barred {
			continue
		}
		c.pass(time.Duration(c.s.nextDue() - c.now.Mono))
		if text := describe(c.do(inDue{})); !strings.Contains(text, "last 1 pid 100 false") {
			t.Errorf("it stays the last one: %s", text)
		}
	}
}

// TestHeldRoleSaysWhoFailedLast.
func TestHeldRoleSaysWhoFailedLast(t *testing.T) {
	c := ledScript()
	c.s.policy.Failovers = 1
	c.do(inEnded{0, 100})
	c.vacate(7)
	c.follow(101, 8, role.ReasonCrash)
	c.do(inExited{index: 0, pid: 100, exit: Exit{PID: 100, Signal: "SIGSEGV"}})
	for _, want := range []string{"1 failovers within 1m0s", "the last one of kv-0 (pid 100): ended by signal SIGSEGV", "standbyd ack kv"} {
		if !strings.Contains(c.s.why, want) || c.s.phase != phaseLed {
			t.Errorf("%s: %q has no %q", c.s.phase, c.s.why, want)
		}
	}
	if b := c.s.budget(c.now); b.Spent != 1 || b.HeldUntil == nil {
		t.Errorf("%+v", b)
	}
	// By hand it can be changed, and stays held.
	a := newAsked(t)
	c.do(inSwitchover{to: 2, reply: a.to})
	c.vacate(8)
	if got := a.answers(c.follow(102, 9, role.ReasonSwitchover)); got == nil || got.err != nil {
		t.Errorf("%+v", got)
	}
	if c.s.control.mode != controlHeld || len(c.s.failovers) != 1 || c.s.control.nominee != -1 {
		t.Errorf("%+v, %d failovers", c.s.control, len(c.s.failovers))
	}
}

// TestRanking: the verdict on every worker, in words.
func TestRanking(t *testing.T) {
	c := ledScript()
	c.s.seats[2].priority = 10
	got := make(chan answer[Ranking], 1)
	for _, e := range c.do(inRank{-1, got}) {
		e.(doAnswer).send()
	}
	r := (<-got).value
	for i, want := range []string{"leads already", "goes after kv-2: lower priority, 0", "goes first: higher priority, 10"} {
		if w := r.Workers[i]; w.Why != want || w.Chosen != (i == 2) {
			t.Errorf("%+v, want %q", w, want)
		}
	}
	if r.To != "kv-2" || r.Leader != "kv-0" || r.Note != "" {
		t.Errorf("%+v", r)
	}
	c.s.policy.Preempt = PreemptLowestPID
	for _, e := range c.do(inRank{2, got}) {
		e.(doAnswer).send()
	}
	if r = (<-got).value; !strings.Contains(r.Note, "lower pid") || r.Workers[2].Why != "is named" {
		t.Errorf("%+v", r)
	}
}
