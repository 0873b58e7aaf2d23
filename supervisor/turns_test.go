package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/launch"
	"github.com/standbyd/standbyd/internal/proc"
)

// atTheDoor is a role that gets turns and does nothing with them.
func atTheDoor() *roleLoop { return &roleLoop{inbox: make(chan input, 64), done: make(chan struct{})} }

func (r *roleLoop) nextTurn(t *testing.T) int {
	t.Helper()
	select {
	case in := <-r.inbox:
		return in.(inTurn).index
	case <-time.After(30 * time.Second):
		t.Fatal("nobody got the turn that is free")
	}
	return -1
}

func TestTurnsAreHandedOn(t *testing.T) {
	q, a, b := newTurns(2), atTheDoor(), atTheDoor()
	if !q.ask(a, 0) || !q.ask(a, 1) {
		t.Fatal("a free turn was not given")
	}
	for i := range 2 {
		if q.ask(a, i) || q.ask(b, i) {
			t.Fatal("a third turn was given")
		}
	}
	// Every role's first worker before any role's second.
	for i := range 2 {
		for _, r := range []*roleLoop{a, b} {
			q.end()
			if got := r.nextTurn(t); got != i {
				t.Errorf("index %d got the turn, want %d", got, i)
			}
		}
	}
	if len(a.inbox)+len(b.inbox) != 0 {
		t.Error("more turns than ended were given")
	}
	q.end()
	if !q.ask(b, 5) || q.ask(b, 6) {
		t.Error("after the queue was empty: not one turn was free")
	}
}

// TestTurnOfARoleThatHasStopped goes to the next one.
func TestTurnOfARoleThatHasStopped(t *testing.T) {
	q, gone, b := newTurns(1), atTheDoor(), atTheDoor()
	gone.inbox = make(chan input) // nobody takes it
	close(gone.done)
	q.ask(b, 0)
	q.ask(gone, 0)
	q.ask(gone, 1)
	q.ask(b, 2)
	q.end()
	if got := b.nextTurn(t); got != 2 {
		t.Errorf("index %d got the turn, want 2", got)
	}
}

// begun is a program that runs.
func begun(t *testing.T, script string) *launch.Process {
	t.Helper()
	p, err := launch.Start(launch.Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Umask: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.KillGroup()
		<-p.Done()
		p.Reap()
		p.Close()
	})
	if _, seen := proc.Runs(p.Identity().PID); !seen {
		t.Skip("the process table does not show it")
	}
	return p
}

func TestTurnEndsWhenTheProgramWaits(t *testing.T) {
	q, a := newTurns(1), atTheDoor()
	q.ask(a, 0)
	q.ask(a, 1)
	q.endAfter(begun(t, "exec sleep 1000"), time.Millisecond, func(int) bool { return false })
	if got := a.nextTurn(t); got != 1 {
		t.Errorf("index %d got the turn, want 1", got)
	}
}

// TestTurnLastsWhileTheProgramIsBusy, and ends when the worker is ready.
func TestTurnLastsWhileTheProgramIsBusy(t *testing.T) {
	q, a := newTurns(1), atTheDoor()
	var ready atomic.Bool
	looks := make(chan bool, 1000)
	q.ask(a, 0)
	q.ask(a, 1)
	q.endAfter(begun(t, "while :; do :; done"), time.Millisecond, func(int) bool { looks <- true; return ready.Load() })
	for range 5 {
		<-looks
	}
	if len(a.inbox) != 0 {
		t.Error("the next one may start while the program is busy")
	}
	ready.Store(true)
	if got := a.nextTurn(t); got != 1 {
		t.Errorf("index %d got the turn, want 1", got)
	}
}

// queued has worker 0 waiting for its turn.
func queued(t *testing.T) *script {
	t.Helper()
	c := newScript()
	c.s = workerIn(lotBackoff)
	c.s.workers[0].due = c.now.Mono
	if out := c.do(inDue{}); !slices.ContainsFunc(out, isQueue) || c.s.workers[0].lot != lotQueued {
		t.Fatalf("%s after %v", c.s.workers[0].lot, out)
	}
	return c
}

func isQueue(e effect) bool  { _, ok := e.(doQueue); return ok }
func isYield(e effect) bool  { _, ok := e.(doYield); return ok }
func isLaunch(e effect) bool { _, ok := e.(doLaunch); return ok }

// TestLimitOfAStartBeginsWithTheTurn: a worker is not to blame for what it waited.
func TestLimitOfAStartBeginsWithTheTurn(t *testing.T) {
	c := queued(t)
	c.pass(10 * c.s.policy.StartTimeout)
	c.do(inDue{})
	if out := c.do(inTurn{0}); !slices.ContainsFunc(out, isLaunch) || c.s.workers[0].lot != lotStarting {
		t.Fatalf("%s after %v", c.s.workers[0].lot, out)
	}
	if due, want := c.s.workers[0].due, c.now.after(c.s.policy.StartTimeout); due != want {
		t.Errorf("it has to be ready by %d, want %d", due, want)
	}
}

// TestTurnThatNobodyWantsAnyMore is given back, whatever has changed meanwhile.
func TestTurnThatNobodyWantsAnyMore(t *testing.T) {
	smaller := testPolicy()
	smaller.Workers = 0
	for name, c := range map[string]struct {
		change func(*script)
		then   lot
	}{
		"stopped by hand":     {func(c *script) { c.do(inByHand{verb: handStop, index: 0}) }, lotStopped},
		"role shut down":      {func(c *script) { c.do(inClose{}); c.do(inKill{}) }, lotStopped},
		"sockets were lost":   {func(c *script) { c.s.sockets = false }, lotBackoff},
		"one worker too many": {func(c *script) { c.do(inReload{policy: smaller, version: c.s.version}) }, lotStopped},
	} {
		t.Run(name, func(t *testing.T) {
			s := queued(t)
			c.change(s)
			out := s.do(inTurn{0})
			if slices.ContainsFunc(out, isLaunch) || !slices.ContainsFunc(out, isYield) || s.s.workers[0].lot != c.then {
				t.Errorf("%s after %v, want %s and the turn given back", s.s.workers[0].lot, out, c.then)
			}
		})
	}
}

// TestOneTooManyIsNotStartedAgain: its back-off ends after the role was made smaller.
func TestOneTooManyIsNotStartedAgain(t *testing.T) {
	c := newScript()
	c.s = testState()
	w := &c.s.workers[2]
	w.lot, w.pid, w.ready, w.due = lotBackoff, 0, false, c.now.after(time.Second)
	smaller := testPolicy()
	smaller.Workers = 2
	c.do(inReload{policy: smaller, version: c.s.version})
	c.pass(2 * time.Second)
	if out := c.do(inDue{}); slices.ContainsFunc(out, isQueue) || c.s.workers[2].lot != lotStopped {
		t.Errorf("%s after %v", c.s.workers[2].lot, out)
	}
}

// TestRollWaitsForTheTurn: what is started with new settings is awaited, also
// while it has not begun.
func TestRollWaitsForTheTurn(t *testing.T) {
	c := queued(t)
	lead(&c.s)
	c.s.workers[0].lot, c.s.workers[0].leading, c.s.led.worker = lotQueued, 0, 1
	c.s.owner, c.s.active = hold{101, 7}, hold{101, 7}
	c.s.led.hold, c.s.workers[1].lot, c.s.workers[1].leading = hold{101, 7}, lotLeader, 7
	rolled := make(chan answer[Rolled], 1)
	c.do(inReload{policy: testPolicy(), version: "new", reply: rolled})
	if len(rolled) != 0 || c.s.roll == nil || c.s.roll.index != 0 {
		t.Fatalf("the roll does not wait for kv-0: %+v", c.s.roll)
	}
	c.do(inTurn{0})
	c.do(inLaunched{0, 200})
	if w := c.s.workers[0]; w.version != "new" {
		t.Errorf("it was started with the settings %q", w.version)
	}
	if c.s.roll == nil || c.s.roll.index != 0 {
		t.Errorf("the roll does not wait until kv-0 is ready: %+v", fmt.Sprint(c.s.roll))
	}
}

// TestScaleDownWaitsForNobody: those who wait for their turn are started with
// the settings that hold, and are no part of the change.
func TestScaleDownWaitsForNobody(t *testing.T) {
	c := queued(t)
	smaller := testPolicy()
	smaller.Workers = 2
	rolled := make(chan answer[Rolled], 1)
	c.s.workers[2].lot, c.s.workers[2].pid, c.s.workers[2].ready = lotBackoff, 0, false
	c.s.workers[2].why = "not ready within 5s"
	for _, e := range c.do(inReload{policy: smaller, version: c.s.version, reply: rolled}) {
		if a, ok := e.(doAnswer); ok {
			a.send()
		}
	}
	if len(rolled) != 1 {
		t.Errorf("the change waits: %+v", c.s.roll)
	}
	c.s.workers[0].ready, c.s.workers[1].ready = false, false
	turn := &turn{s: c.s, now: c.now}
	if why := turn.whyNobody(); strings.Contains(why, "kv-2") {
		t.Errorf("the role waits for a worker that is none of its any more: %s", why)
	}
}
