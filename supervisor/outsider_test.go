package supervisor

import (
	"strings"
	"testing"
	"time"
)

// outsiders are three workers that were started at testNow and did nothing yet.
func outsiders() *script {
	c := newScript()
	c.s.seats = nil
	for i := range c.s.workers {
		w := &c.s.workers[i]
		w.lot, w.ready, w.readyAt, w.startAt = lotStarting, false, 0, testNow.Mono
	}
	return c
}

// A program that never joins is told as what it is, after a while; in its next
// lives at once.
func TestOutsiderIsTold(t *testing.T) {
	c := outsiders()
	hinted := func() bool { return strings.Contains(c.s.why, "package coord") }
	if c.do(look(c.s)); hinted() || c.s.outsider(0, c.now.Mono) != "" {
		t.Errorf("at once: %s", c.s.why)
	}
	c.pass(joinWait)
	if c.do(look(c.s)); c.s.why != noneJoins || c.s.outsider(0, c.now.Mono) != notJoined {
		t.Errorf("after %v: %s", joinWait, c.s.why)
	}
	for i := range c.s.workers {
		c.s.workers[i].due = c.now.Mono
	}
	c.do(inDue{})
	if w := c.s.workers[0]; !w.outside || !strings.Contains(w.why, "not ready within") || !strings.Contains(w.why, "had not joined") {
		t.Errorf("given up: %+v", w)
	}
	for i := range c.s.workers {
		w := &c.s.workers[i]
		w.startAt, w.why, w.lot = c.now.Mono, "", lotStarting
	}
	if c.do(look(c.s)); c.s.why != noneJoins || c.s.outsider(0, c.now.Mono) != notEither {
		t.Errorf("in the next life: %s", c.s.why)
	}
	c.s.seats = testState().seats
	for i := range c.s.seats {
		c.s.seats[i].ready = false
	}
	if c.do(look(c.s)); hinted() || c.s.workers[0].outside {
		t.Errorf("they have joined and warm up: %s", c.s.why)
	}
}

// Whoever has had a seat uses the package, also while it ends.
func TestMembersAreNoOutsiders(t *testing.T) {
	c := newScript()
	c.do(look(c.s))
	c.s.seats = nil
	c.pass(time.Hour)
	for _, l := range []lot{lotStandby, lotStopping} {
		for i := range c.s.workers {
			c.s.workers[i].lot, c.s.workers[i].vitals.said = l, true
		}
		if c.do(look(c.s)); strings.Contains(c.s.why, "package coord") || c.s.unseated(0, c.now.Mono) {
			t.Errorf("as %s: %s", l, c.s.why)
		}
	}
}
