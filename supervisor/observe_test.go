package supervisor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// script is a role whose inputs are written down, and whose effects are read.
type script struct {
	s   state
	now moment
	out strings.Builder
}

func newScript() *script {
	s := testState()
	s.since = testNow.Mono
	return &script{s: s, now: testNow}
}

func (c *script) do(in input) []effect {
	var effects []effect
	c.s, effects = step(c.s, in, c.now)
	name := strings.TrimPrefix(fmt.Sprintf("%T", in), "supervisor.in")
	fmt.Fprintf(&c.out, "%s: %s%s\n", name, c.s.phase, describe(effects))
	return effects
}

func (c *script) pass(d time.Duration) {
	c.now = moment{c.now.Wall.Add(d), c.now.Mono + int64(d)}
	fmt.Fprintf(&c.out, "(%v)\n", d)
}

// us is testNow's mono time and some microseconds.
func us(n int64) int64 { return testNow.Mono + n*1000 }

func (c *script) see(owner, active hold, ring ...ringView) []effect {
	return c.do(inSeen{owner: owner, active: active, seats: c.s.seats, ring: ring})
}

func records(effects []effect) (all []Record) {
	for _, e := range effects {
		if r, ok := e.(doRecord); ok {
			all = append(all, r.record)
		}
	}
	return all
}

func value(p *float64) float64 {
	if p == nil {
		return -1
	}
	return *p
}

// TestConversation is a whole life of a role: read testdata/conversation.txt.
func TestConversation(t *testing.T) {
	c := newScript()
	code := 0
	first := ringView{term: 1, pid: 100, reason: role.ReasonFirst, detected: us(1), claimed: us(2), activated: us(3)}
	c.see(hold{100, 1}, hold{}, ringView{term: 1, pid: 100, reason: role.ReasonFirst, detected: us(1), claimed: us(2)})
	c.see(hold{100, 1}, hold{100, 1}, first)
	c.do(inJob{kind: momentPromote, t: c.s.told, at: us(50)})
	c.do(inJob{kind: momentAnnounce, t: c.s.told, at: us(60)})
	c.pass(time.Second)
	fmt.Fprintln(&c.out, "# the leader is killed by hand")
	c.do(inEnded{0, 100})
	first.ended = us(1000000)
	second := ringView{term: 2, pid: 101, reason: role.ReasonCrash, detected: us(1000100), claimed: us(1000110), activated: us(1000200)}
	c.see(hold{0, 1}, hold{0, 1}, first)
	c.see(hold{101, 2}, hold{0, 1}, first, second)
	c.do(inExited{index: 0, pid: 100, exit: Exit{PID: 100, Signal: "SIGKILL"}})
	c.see(hold{101, 2}, hold{101, 2}, first, second)
	c.do(inJob{kind: momentDemote, t: role.Transition{Token: c.s.token(1)}, at: us(1000300)})
	c.do(inJob{kind: momentPromote, t: c.s.told, at: us(1000400)})
	c.pass(time.Second)
	c.do(inDue{})
	c.do(inTurn{0})
	c.do(inLaunched{0, 200})
	fmt.Fprintln(&c.out, "# shutdown")
	c.do(inClose{})
	second.retired = us(3000000)
	c.see(hold{101, 2}, hold{101, 2}, first, second)
	c.see(hold{0, 2}, hold{0, 2}, first, second)
	c.do(inJob{kind: momentDemote, t: role.Transition{Token: c.s.token(2)}})
	c.do(inJob{kind: momentAnnounce, t: role.Transition{Token: c.s.token(2)}})
	for i, pid := range []int{200, 101, 102} {
		c.do(inEnded{i, pid})
		c.do(inExited{index: i, pid: pid, exit: Exit{PID: pid, Code: &code}})
	}
	c.do(inJob{kind: momentStop})
	golden(t, "conversation.txt", c.out.String())
}

// TestRecordPhases: zero is the earliest evidence, or the drill's own stamp.
func TestRecordPhases(t *testing.T) {
	c := newScript()
	c.s.policy.Hooks = nil
	lead(&c.s)
	old := ringView{term: 7, pid: 100, activated: us(-500), ended: us(10)}
	next := ringView{term: 8, pid: 101, reason: role.ReasonCrash, detected: us(4), claimed: us(20), activated: us(30)}
	recs := records(c.see(hold{101, 8}, hold{101, 8}, old, next))
	if len(recs) != 1 {
		t.Fatalf("%d records", len(recs))
	}
	r := recs[0]
	if r.From != "kv-0" || r.To != "kv-1" || value(r.DetectedUS) != 0 || value(r.ClaimedUS) != 16 || value(r.ActiveUS) != 26 || r.HooksUS != nil {
		t.Errorf("%+v: %v %v %v", r, value(r.DetectedUS), value(r.ClaimedUS), value(r.ActiveUS))
	}

	c = newScript()
	c.s.policy.Hooks = nil
	lead(&c.s)
	answers := make(chan answer[Record], 1)
	for _, e := range c.do(inDrill{fault: FaultKill, reply: answers}) {
		if hit, ok := e.(doHit); ok {
			c.do(inHit{term: hit.term, zero: us(0)})
		}
	}
	// The leader died before it could stamp that it was active.
	old = ringView{term: 7, pid: 100}
	for _, e := range c.see(hold{101, 8}, hold{101, 8}, old, next) {
		if a, ok := e.(doAnswer); ok {
			a.send()
		}
	}
	select {
	case a := <-answers:
		if a.value.Reason != role.ReasonDrill || value(a.value.DetectedUS) != 4 || a.value.From != "kv-0" {
			t.Errorf("%+v, %v", a.value, a.err)
		}
	default:
		t.Error("the drill was not answered")
	}
}

// TestTermsThatNobodyWatched are in the history, in order, without what only a
// watching supervisor knows; terms that never led are not.
func TestTermsThatNobodyWatched(t *testing.T) {
	c := newScript()
	c.s.adopted, c.s.recorded, c.s.counted = true, 1, 1
	c.s.policy.Hooks = nil
	c.s.workers[0].past = []int{90}
	recs := records(c.see(hold{102, 4}, hold{102, 4},
		ringView{term: 1, pid: 90, activated: us(-90), ended: us(-80)},
		ringView{term: 2, pid: 101, reason: role.ReasonCrash, detected: us(-79), claimed: us(-78), activated: us(-77), ended: us(-50)},
		ringView{term: 3, pid: 101, reason: role.ReasonHang, claimed: us(-49)},
		ringView{term: 4, pid: 102, reason: role.ReasonStepDown, detected: us(-45), claimed: us(-44), activated: us(-43)}))
	if len(recs) != 2 {
		t.Fatalf("%+v", recs)
	}
	if r := recs[0]; r.Term != 2 || r.From != "kv-0" || r.FromPID != 90 || r.To != "kv-1" || r.DetectedUS != nil || value(r.ClaimedUS) != 2 {
		t.Errorf("%+v", r)
	}
	if r := recs[1]; r.Term != 4 || r.Reason != role.ReasonHang || r.From != "kv-1" || r.To != "kv-2" || value(r.ActiveUS) != 7 {
		t.Errorf("%+v", r)
	}
	if c.s.told.Reason != role.ReasonAdopted || len(c.s.failovers) != 2 {
		t.Errorf("told %s, %d failovers", c.s.told.Reason, len(c.s.failovers))
	}
}

// TestUndeadLeaderHoldsTheRole: no proof of death, no next leader, and the
// status says whom to look at.
func TestUndeadLeaderHoldsTheRole(t *testing.T) {
	c := newScript()
	lead(&c.s)
	old, next := ringView{term: 7, pid: 100, activated: us(-9)}, ringView{term: 8, pid: 101, reason: role.ReasonHang, claimed: us(0)}
	c.see(hold{101, 8}, hold{100, 7}, old, next)
	c.pass(c.s.policy.FenceTimeout / 2)
	c.see(hold{0, 8}, hold{100, 7}, old, next)
	c.see(hold{102, 9}, hold{100, 7}, old, next)
	if c.s.phase != phaseVacant {
		t.Errorf("too early: %s", c.s.phase)
	}
	c.pass(c.s.policy.FenceTimeout / 2)
	c.see(hold{102, 9}, hold{100, 7}, old, next)
	if c.s.phase != phaseHeld || !strings.Contains(c.s.why, "pid 100 (kv-0)") || c.s.control.mode != controlHeld {
		t.Errorf("%s: %s", c.s.phase, c.s.why)
	}
	c.see(hold{0, 9}, hold{0, 7}, old, next)
	if c.s.phase != phaseVacant || c.s.control.mode != controlOpen {
		t.Errorf("it has ended: %s", c.s.phase)
	}
}

// TestBudgetIsAWindow: failovers leave it with time, planned changes do not
// enter it.
func TestBudgetIsAWindow(t *testing.T) {
	c := newScript()
	c.s.policy.Hooks, c.s.policy.Failovers, c.s.policy.Per = nil, 2, time.Minute
	lead(&c.s)
	term, ring := uint64(7), c.s.ring
	change := func(reason role.Reason) {
		term++
		h := hold{100 + uint32(term%3), term}
		ring = append(ring, ringView{term: term, pid: h.pid, reason: reason, activated: c.now.Mono})
		c.see(h, h, ring...)
	}
	for range 5 {
		change(role.ReasonStepDown)
	}
	change(role.ReasonCrash)
	c.pass(2 * time.Minute)
	change(role.ReasonHang)
	if c.s.control.mode != controlOpen {
		t.Fatal("held too early")
	}
	change(role.ReasonCrash)
	if c.s.control.mode != controlHeld || c.s.phase != phaseLed {
		t.Fatalf("mode %d, phase %s", c.s.control.mode, c.s.phase)
	}
	c.pass(c.s.policy.CoolDown)
	c.do(inDue{})
	if c.s.control.mode != controlOpen || len(c.s.failovers) != 0 {
		t.Error("it did not heal by itself")
	}
}

// TestStepChangesNothingOfItsArgument: the state that step gets stays as it was.
func TestStepChangesNothingOfItsArgument(t *testing.T) {
	for row := range phaseCount {
		for col := range happeningCount {
			s := roleIn(row)
			before := fmt.Sprintf("%+v", s)
			in := happeningInput(col)
			step(s, in, testNow)
			if after := fmt.Sprintf("%+v", s); after != before {
				t.Errorf("%s x %s\n before %s\n after  %s", row, happeningNames[col], before, after)
			}
		}
	}
}
