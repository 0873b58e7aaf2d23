package supervisor

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestDrillInAPause: a forced one, or one in which the pause comes, does not
// wait for a takeover that cannot come, and says what to type.
func TestDrillInAPause(t *testing.T) {
	for _, x := range []struct {
		name   string
		fault  Fault
		before bool // the pause
		goesOn bool // the old leader
	}{
		{"killed, forced", FaultKill, true, false},
		{"killed, paused then", FaultKill, false, false},
		{"told to exit, forced", FaultExit, true, false},
		{"stopped, forced", FaultStop, true, true},
		{"stopped, paused then", FaultStop, false, true},
	} {
		c := newScript()
		lead(&c.s)
		c.s.policy.Hooks = nil
		if x.before {
			c.do(inPause{})
		}
		_, hit, record := drilled(c, inDrill{fault: x.fault, force: x.before})
		c.answering(c.do(inHit{term: 7, zero: c.now.Mono}))
		if len(hit) != 1 {
			t.Errorf("%s: nobody was told of the fault", x.name)
		}
		if !x.before {
			c.answering(c.do(inPause{}))
		}
		if err := refusalOf(t, record); err != nil {
			t.Fatalf("%s: it ended before the fault was done: %v", x.name, err)
		}
		want := "`standbyd failover kv` makes a standby lead"
		if x.goesOn {
			want = "kv-0 goes on"
			due := time.Duration(c.s.nextDue() - c.now.Mono)
			if due <= 0 || due > time.Duration(c.s.policy.Grace+1)*c.s.policy.Tick {
				t.Fatalf("%s: looked at again in %v", x.name, due)
			}
			c.pass(due)
			c.answering(c.do(inDue{}))
		} else {
			c.do(inEnded{0, 100})
			c.answering(c.see(hold{0, 7}, hold{0, 7}, c.s.ring...))
		}
		err := refusalOf(t, record)
		if !errors.Is(err, ErrNoTakeover) || !strings.Contains(err.Error(), "paused until `standbyd resume kv`") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", x.name, err)
		}
		if c.s.drill != nil {
			t.Errorf("%s: the drill goes on", x.name)
		}
	}
}

// TestDrillEndsInAPauseBetweenRounds: the wait for a standby is not one for the
// end of a pause.
func TestDrillEndsInAPauseBetweenRounds(t *testing.T) {
	status := &RoleStatus{State: RoleLed, Why: "paused: no failover until `standbyd resume kv`", Pause: &PauseStatus{},
		Workers: []WorkerStatus{{State: WorkerLeader, Ready: true}, {State: WorkerStandby, Ready: true}}}
	if ready, err := drillable(status, false); ready || !errors.Is(err, errPaused) || !strings.Contains(err.Error(), "standbyd resume kv") {
		t.Errorf("%v, %v", ready, err)
	}
	if ready, err := drillable(status, true); !ready || err != nil {
		t.Errorf("forced: %v, %v", ready, err)
	}
	status.State = RolePaused
	if ready, err := drillable(status, true); ready || !errors.Is(err, errPaused) {
		t.Errorf("forced, and nobody leads: %v, %v", ready, err)
	}
}

// TestLeaderIsNotTakenFromAPausedRole by a stop or a restart: nobody may follow.
// What takes no leader, or all of the role on purpose, is done.
func TestLeaderIsNotTakenFromAPausedRole(t *testing.T) {
	for _, x := range []struct {
		verb    handVerb
		index   int
		refused string
	}{
		{handRestart, theLeader, "standbyd switchover kv"},
		{handRestart, 0, "standbyd switchover kv"},
		{handStop, theLeader, "standbyd switchover kv"},
		{handRestart, allWorkers, "--rolling"},
		{handStop, allWorkers, ""},
		{handRestart, 1, ""},
		{handStop, 1, ""},
		{handStart, theLeader, ""},
	} {
		for _, held := range []bool{false, true} {
			c := newScript()
			lead(&c.s)
			undo := "standbyd resume kv"
			if held {
				c.s.control.mode, c.s.control.until = controlHeld, us(60_000_000)
				undo = "standbyd ack kv"
			} else {
				c.do(inPause{})
			}
			answers := make(chan answer[[]int], 1)
			c.answering(c.do(inByHand{x.verb, x.index, answers}))
			got := <-answers
			if x.refused == "" {
				if got.err != nil {
					t.Errorf("verb %d of %d: %v", x.verb, x.index, got.err)
				}
				continue
			}
			if !errors.Is(got.err, ErrNoStandby) || !strings.Contains(got.err.Error(), x.refused) || !strings.Contains(got.err.Error(), undo) {
				t.Errorf("verb %d of %d, held %v: %v", x.verb, x.index, held, got.err)
			}
			if c.s.workers[0].lot != lotLeader || c.s.workers[0].halted {
				t.Errorf("verb %d of %d was refused, and kv-0 is %s", x.verb, x.index, c.s.workers[0].lot)
			}
		}
	}
}

// TestPauseOfALeaderThatGoes is refused: nobody would follow.
func TestPauseOfALeaderThatGoes(t *testing.T) {
	for _, x := range []struct {
		what  string
		input inByHand
		want  bool
	}{
		{"restart of the leader", inByHand{handRestart, 0, nil}, true},
		{"stop of the leader", inByHand{handStop, theLeader, nil}, true},
		{"restart of all", inByHand{handRestart, allWorkers, nil}, true},
		{"stop of all", inByHand{handStop, allWorkers, nil}, false},
		{"restart of a standby", inByHand{handRestart, 1, nil}, false},
	} {
		c := newScript()
		lead(&c.s)
		c.do(x.input)
		answers := make(chan answer[PauseStatus], 1)
		c.answering(c.do(inPause{reply: answers}))
		got := <-answers
		if refused := errors.Is(got.err, ErrBusy); refused != x.want || refused == c.s.pause.on || got.err != nil && !refused {
			t.Errorf("%s, then a pause: %v; paused: %v", x.what, got.err, c.s.pause.on)
		}
	}
	c := newScript()
	lead(&c.s)
	c.do(inPause{})
	c.do(inSwitchover{to: -1})
	c.do(inPause{length: time.Second})
	if !c.s.pause.on || c.s.pause.until == 0 {
		t.Error("a pause of a paused role does not replace it")
	}
}

// TestPlacesThatAreGoneAreNotNamed: those that were scaled away.
func TestPlacesThatAreGoneAreNotNamed(t *testing.T) {
	c, a := ledScript(), newAsked(t)
	w := &c.s.workers[2]
	w.extra, w.pid, w.lot = true, 0, lotStopped
	c.s.seats = c.s.seats[:2]
	c.s.seats[1].ready = false
	got := a.answers(c.do(inSwitchover{to: -1, reply: a.to}))
	if got == nil || !errors.Is(got.err, ErrNoStandby) || !strings.Contains(got.err.Error(), "kv-1") || strings.Contains(got.err.Error(), "kv-2") {
		t.Errorf("%+v", got)
	}
	ranked := make(chan answer[Ranking], 1)
	c.answering(c.do(inRank{-1, ranked}))
	if r := (<-ranked).value; len(r.Workers) != 2 {
		t.Errorf("%+v", r.Workers)
	}
}

// TestStoppedProcessGoesOnToEnd: an orderly stop also lets a process run that
// somebody has stopped, but no leader that has lost the lease.
func TestStoppedProcessGoesOnToEnd(t *testing.T) {
	for _, x := range []struct {
		name  string
		index int
		owner hold
		want  bool
	}{
		{"a standby", 1, hold{100, 7}, true},
		{"the leader", 0, hold{100, 7}, true},
		{"a leader that is fenced", 0, hold{101, 8}, false},
	} {
		c := newScript()
		lead(&c.s)
		c.s.owner = x.owner
		signals := ""
		for _, e := range c.do(inByHand{handStop, x.index, nil}) {
			if e, ok := e.(doSignal); ok && e.index == x.index {
				signals += e.sig.String() + " "
			}
		}
		want := c.s.policy.stopSignal().String() + " "
		if x.want {
			want += signalContinue.String() + " "
		}
		if signals != want {
			t.Errorf("%s: %q, want %q", x.name, signals, want)
		}
	}
}

// TestOneChangeAtATime: another one is refused and named.
func TestOneChangeAtATime(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	w.until("the role is full", full)
	if err := w.sup.reshaping.begin("restart kv --rolling"); err != nil {
		t.Fatal(err)
	}
	_, scale := w.sup.Scale(t.Context(), "kv", 2)
	_, roll := w.sup.RestartRolling(t.Context(), "kv")
	_, reload := w.sup.Reload(t.Context(), c)
	for what, err := range map[string]error{"scale kv 2": scale, "restart kv --rolling": roll, "reload": reload} {
		if !errors.Is(err, ErrBusy) || !strings.HasPrefix(err.Error(), what+": ") || !strings.Contains(err.Error(), "under way: restart kv --rolling;") {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.sup.reshaping.end()
	if _, err := w.sup.Scale(t.Context(), "kv", 2); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	var bad *ConfigError
	if _, err := w.sup.Scale(t.Context(), "kv", 0); !errors.As(err, &bad) {
		t.Errorf("no workers: %v", err)
	}
}
