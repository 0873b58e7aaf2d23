package supervisor

import (
	"slices"
	"strings"
	"testing"
)

func scaleTo(workers int, s *state, to reply[Rolled]) inReload {
	p := testPolicy()
	p.Workers = workers
	return inReload{policy: p, version: s.version, what: "scale to some", reply: to}
}

// A change that is under way is told, with whom it waits for and who comes
// after; a place that is still to be filled is no worker that was stopped.
func TestUnderWay(t *testing.T) {
	c := newScript()
	lead(&c.s)
	if text := c.s.underWay(); text != "" {
		t.Errorf("nothing is under way: %s", text)
	}
	c.do(scaleTo(6, &c.s, nil))
	if text := c.s.underWay(); !strings.HasPrefix(text, "scale to some is under way: waits for kv-3") || !strings.HasSuffix(text, "; after that: kv-4, kv-5") {
		t.Errorf("it says: %s", text)
	}
	if c.s.toCome(3) || !c.s.toCome(4) || !c.s.toCome(5) || c.s.toCome(2) {
		t.Errorf("to come: %+v", c.s.workers)
	}
	c.s.workers[5].halted = true
	if text := c.s.underWay(); c.s.toCome(5) || !strings.HasSuffix(text, "; after that: kv-4") {
		t.Errorf("it counts one that was stopped by hand: %s", text)
	}
}

// The report has those too that had no process when they were taken away, and
// a place that is made again is not one that was stopped by hand.
func TestScaleReportsWorkersWithoutProcess(t *testing.T) {
	c := newScript()
	lead(&c.s)
	w := &c.s.workers[2]
	w.lot, w.pid, w.ready, w.halted, w.wanted = lotStopped, 0, false, true, false
	w.lastExit = &Exit{PID: 102}
	rolled := make(chan answer[Rolled], 1)
	for _, e := range c.do(scaleTo(2, &c.s, rolled)) {
		if a, ok := e.(doAnswer); ok {
			a.send()
		}
	}
	select {
	case got := <-rolled:
		if got.err != nil || !slices.Equal(got.value.Stopped, []string{"kv-2"}) {
			t.Errorf("the report: %+v", got)
		}
	default:
		t.Fatalf("there is no report; %s", c.s.underWay())
	}
	c.do(scaleTo(3, &c.s, nil))
	if w := c.s.workers[2]; w.halted || w.lot != lotQueued {
		t.Errorf("kv-2 is not started again: %+v", w)
	}
}
