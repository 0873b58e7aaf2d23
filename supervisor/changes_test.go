package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/test/verify"
)

// TestThousandForcedChanges forces a thousand changes of leader, one every 0 to
// 40 ms, on the real step and the real hook queue, with hooks that take 0 to 200
// ms, fail, ignore that they are called off, and hang. Time is simulated. The
// whole history is judged: leaderships do not overlap, tokens rise, and every
// hook is promoted and demoted in turn, never twice at a time.
func TestThousandForcedChanges(t *testing.T) {
	changes := 1000
	if raceDetector {
		changes = 200
	}
	for _, gate := range []bool{false, true} {
		t.Run(fmt.Sprintf("gate=%v", gate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { forceChanges(t, gate, 0, changes) })
		})
	}
}

// slowly is a hook that takes its time and keeps a record.
type slowly struct {
	UnimplementedHooks
	name string
	gate bool
	mu   sync.Mutex
	rnd  *rand.Rand
	book []verify.Call
}

func (h *slowly) take(ctx context.Context, m verify.Moment, t role.Transition) error {
	h.mu.Lock()
	i := len(h.book)
	h.book = append(h.book, verify.Call{Hook: h.name, Moment: m, Token: t.Token, Start: simulated()})
	d, dice := time.Duration(h.rnd.IntN(200))*time.Millisecond, h.rnd.IntN(400)
	h.mu.Unlock()
	err := h.pass(ctx, d, dice)
	h.mu.Lock()
	h.book[i].End = simulated()
	h.mu.Unlock()
	return err
}

func (h *slowly) pass(ctx context.Context, d time.Duration, dice int) error {
	switch {
	case dice == 0: // hangs, also beyond the time after which it is given up
		time.Sleep(20 * time.Second)
		return errors.New("woke up")
	case dice < 200: // does not care that it is called off
		time.Sleep(d)
	default:
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if dice%20 == 1 {
		return errors.New("cannot")
	}
	return nil
}

func (h *slowly) OnPromote(ctx context.Context, t role.Transition) error {
	return h.take(ctx, verify.Promote, t)
}
func (h *slowly) OnDemote(ctx context.Context, t role.Transition) error {
	return h.take(ctx, verify.Demote, t)
}
func (h *slowly) HasPrePromote() bool { return h.gate }
func (h *slowly) PrePromote(ctx context.Context, _ role.Transition) error {
	h.mu.Lock()
	d, dice := time.Duration(h.rnd.IntN(200))*time.Millisecond, h.rnd.IntN(20)
	h.mu.Unlock()
	time.Sleep(d)
	if dice == 0 {
		return errors.New("not this one")
	}
	return nil
}

// simulated is the time of the bubble in ns; never 0, which has a meaning.
func simulated() int64 { return time.Now().UnixNano() }

// changing plays the loop and the members of one role.
type changing struct {
	t     *testing.T
	s     state
	q     *hookQueue
	inbox chan input
	rnd   *rand.Rand
	leads []verify.Lead
	last  uint64 // the highest term
	ring  []ringView
	pid   int
	done  bool
}

func forceChanges(t *testing.T, gate bool, seed uint64, changes int) {
	var named []NamedHooks
	for i, name := range []string{"a", "b"} {
		named = append(named, NamedHooks{Name: name, Hooks: &slowly{name: name, gate: gate && i == 0, rnd: rand.New(rand.NewPCG(seed, uint64(i)))}})
	}
	p := testPolicy()
	p.Hooks, p.Failovers, p.Burst = named, 1<<30, 1<<30
	w := &changing{t: t, inbox: make(chan input, 1<<16), rnd: rand.New(rand.NewPCG(seed, 9)), pid: 1000}
	w.s = newState(p, simulated())
	w.s.generation, w.s.segment, w.s.sockets = 3, "/run/segment.3", true
	w.q = newHookQueue(named, make([]HookEnv, 2), p.HookTimeout, simulated, func(in input) { w.inbox <- in })
	w.q.put(doJob{kind: momentStart})
	go w.q.run()
	for len(w.leads) < changes {
		w.wait(time.Duration(w.rnd.IntN(40)) * time.Millisecond)
		w.change()
	}
	w.input(inClose{})
	for range 10000 {
		if w.done {
			break
		}
		w.wait(time.Second)
		w.s.owner.pid, w.s.active.pid = 0, 0
		w.endLead()
		w.look()
		w.bury()
	}
	if !w.done {
		t.Fatalf("the role did not end: %s, %d jobs", w.s.phase, w.s.jobs)
	}
	time.Sleep(time.Minute) // a call that was given up wakes up, and ends
	for i, h := range named {
		history := verify.History{Calls: h.Hooks.(*slowly).book}
		if i == 0 {
			history.Leads = w.leads
		}
		for _, v := range history.Check() {
			t.Error(v)
		}
		promotes, demotes := 0, 0
		for _, c := range history.Calls {
			if c.Moment == verify.Promote {
				promotes++
			} else {
				demotes++
			}
		}
		if promotes < changes/2 || demotes < changes/2 {
			t.Errorf("%s: %d promotions and %d demotions of %d leaderships", h.Name, promotes, demotes, len(w.leads))
		}
	}
}

// wait lets time pass, and the queue's answers come in.
func (w *changing) wait(d time.Duration) {
	for end := time.After(d); ; {
		select {
		case in := <-w.inbox:
			w.input(in)
		case <-end:
			w.input(inDue{})
			return
		}
	}
}

// input takes a step and plays the part of the loop.
func (w *changing) input(in input) {
	var effects []effect
	w.s, effects = step(w.s, in, moment{Wall: time.Now(), Mono: simulated()})
	for _, e := range effects {
		switch e := e.(type) {
		case doJob:
			w.q.put(e)
		case doQueue:
			w.input(inTurn(e))
		case doLaunch:
			w.pid++
			w.input(inLaunched{e.index, w.pid})
		case doClear:
			w.done = true
		}
	}
}

// bury lets every worker that is to end come to its end.
func (w *changing) bury() {
	for i := range w.s.workers {
		if k := &w.s.workers[i]; k.lot == lotStopping && k.pid != 0 {
			w.die(i)
		}
	}
}

func (w *changing) die(i int) {
	pid := w.s.workers[i].pid
	if w.s.owner.pid == uint32(pid) {
		w.s.owner.pid = 0
	}
	if w.s.active.pid == uint32(pid) {
		w.s.active.pid = 0
		w.endLead()
	}
	w.input(inEnded{i, pid})
	w.look()
	w.input(inExited{index: i, pid: pid, exit: Exit{PID: pid, Signal: "SIGKILL"}})
}

// change ends the present leadership, if there is one, in one of the ways in
// which one can end, and brings the next claim a step further.
func (w *changing) change() {
	w.bury()
	switch i := w.s.byPID(w.s.owner.pid); {
	case i < 0:
	case w.s.owner != w.s.active && w.s.control.gate && w.s.control.granted != w.s.owner.term &&
		w.s.control.resign != w.s.owner.term && w.rnd.IntN(8) > 0:
		return // waits at the gate
	case w.s.owner != w.s.active && w.s.control.resign != w.s.owner.term && w.rnd.IntN(8) > 0:
		w.s.active = w.s.owner
		w.ring = append([]ringView(nil), w.ring...)
		w.ring[len(w.ring)-1].activated = simulated()
		w.leads = append(w.leads, verify.Lead{Who: w.s.workers[i].name, Token: w.s.token(w.s.active.term), Start: simulated()})
		w.look()
		return
	default:
		switch w.rnd.IntN(3) {
		case 0:
			w.die(i)
		case 1: // steps down
			w.endLead()
			w.s.owner.pid, w.s.active.pid = 0, 0
		case 2: // hangs: the next claim takes the lease from it, the fence kills it
			w.claim(i)
			w.endLead()
			if w.s.active.pid != 0 {
				w.die(i)
			}
		}
	}
	if w.s.owner.pid == 0 {
		w.claim(-1)
	}
	w.look()
}

// endLead closes the last leadership in the book.
func (w *changing) endLead() {
	if n := len(w.leads); n > 0 && w.leads[n-1].End == verify.Open {
		w.leads[n-1].End = simulated()
	}
}

// claim gives the next term to somebody that is ready, other than not.
func (w *changing) claim(not int) {
	var ready []int
	for i := range w.s.workers {
		if k := &w.s.workers[i]; i != not && k.pid != 0 && k.lot != lotEnded && k.lot != lotStopping {
			ready = append(ready, i)
		}
	}
	if len(ready) == 0 || w.s.control.mode != controlOpen {
		return
	}
	w.last++
	w.s.owner = hold{uint32(w.s.workers[ready[w.rnd.IntN(len(ready))]].pid), w.last}
	w.ring = append(w.ring[:len(w.ring):len(w.ring)], ringView{term: w.last, pid: w.s.owner.pid, reason: role.ReasonCrash, claimed: simulated()})
	if n := len(w.ring) - 12; n > 0 {
		w.ring = w.ring[n:]
	}
}

func (w *changing) look() {
	in := inSeen{owner: w.s.owner, active: w.s.active, ring: w.ring}
	for i := range w.s.workers {
		if k := &w.s.workers[i]; k.pid != 0 && k.lot != lotEnded {
			in.seats = append(in.seats, seatView{seat: i + 1, pid: uint32(k.pid), ready: true, racing: true, joined: uint64(k.pid)})
		}
	}
	w.input(in)
}
