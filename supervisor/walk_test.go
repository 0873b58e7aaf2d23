package supervisor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// TestRandomWalk feeds inputs in any order, also ones that cannot follow each
// other. Whatever happens: no deadline stays due after it was told (the loop
// would spin), a place never gets a second process, the hooks are told of
// leaderships one after the other, and a shutdown is finished by what follows
// from it.
func TestRandomWalk(t *testing.T) {
	for seed := range uint64(300) {
		walk(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type walker struct {
	*script
	t      *testing.T
	rnd    *rand.Rand
	pid    int
	alive  map[int]int // index -> pid
	told   role.Token  // in the order in which the hooks are told
	last   role.Token
	jobs   []inJob
	over   bool
	queued []int // indexes of those that asked for a turn and have none yet
	turns  int   // given, and neither used nor given back
	asked  []chan answer[Record]
	rolls  []chan answer[Rolled]

	backlog []input // the first one is being taken
}

// reload asks for any change of the config.
func (w *walker) reload() {
	next := testPolicy()
	next.Workers = 1 + w.rnd.IntN(4)
	if w.rnd.IntN(3) == 0 {
		next.Hooks = nil
	}
	to := make(chan answer[Rolled], 2)
	w.rolls = append(w.rolls, to)
	w.input(inReload{policy: next, version: fmt.Sprint(w.rnd.IntN(3)), hooks: len(next.Hooks) != len(w.s.policy.Hooks), renew: w.rnd.IntN(6) == 0, reply: to})
}

// ask is where the answer to a request goes. There has to be one by the end.
func (w *walker) ask() chan answer[Record] {
	to := make(chan answer[Record], 2)
	w.asked = append(w.asked, to)
	return to
}

func walk(t *testing.T, seed uint64) {
	w := &walker{script: newScript(), t: t, rnd: rand.New(rand.NewPCG(seed, 1)), pid: 1000, alive: map[int]int{}}
	w.s = newState(testPolicy(), testNow.Mono)
	w.s.generation, w.s.segment, w.s.sockets = 3, "/run/segment.3", seed%2 == 0
	w.input(inHooked{gate: seed%3 == 0})
	for range 150 {
		w.random()
	}
	w.input(inClose{})
	w.s.owner, w.s.active = hold{}, hold{}
	for range 200 {
		if w.over {
			for i, to := range w.asked {
				if len(to) != 1 {
					t.Errorf("request %d got %d answers", i, len(to))
				}
			}
			for i, to := range w.rolls {
				if len(to) != 1 {
					t.Errorf("reload %d got %d answers", i, len(to))
				}
			}
			return
		}
		w.input(inSeen{})
		w.pass(time.Second)
		w.settle()
	}
	t.Errorf("the role did not end: %s, %d processes, %d jobs", w.s.phase, w.s.processes(), w.s.jobs)
}

// turn gives whoever asked first a turn.
func (w *walker) turn() {
	if len(w.queued) == 0 {
		return
	}
	i := w.queued[0]
	w.queued = w.queued[1:]
	w.turns++
	w.input(inTurn{i})
	if w.turns != 0 {
		w.t.Errorf("a turn of place %d (%s) was neither used nor given back", i, w.s.workers[i].lot)
	}
}

// settle lets happen what has to: turns, deaths, jobs, deadlines.
func (w *walker) settle() {
	for len(w.queued) > 0 {
		w.turn()
	}
	for i, pid := range w.alive {
		if w.s.workers[i].lot == lotStopping {
			w.die(i, pid)
		}
	}
	for len(w.jobs) > 0 {
		w.job()
	}
	w.due()
}

func (w *walker) due() {
	w.input(inDue{jitter: w.rnd.Float64()})
	if at := w.s.nextDue(); at != 0 && at <= w.now.Mono {
		w.t.Errorf("%s: a deadline is due after it was told: %+v", w.s.phase, w.s)
	}
}

func (w *walker) die(i, pid int) {
	delete(w.alive, i)
	code := w.rnd.IntN(2)
	w.input(inEnded{i, pid})
	w.input(inExited{index: i, pid: pid, exit: Exit{PID: pid, Code: &code}, jitter: w.rnd.Float64()})
}

func (w *walker) job() {
	j := w.jobs[0]
	w.jobs = w.jobs[1:]
	j.at = w.now.Mono
	if w.rnd.IntN(4) == 0 && j.kind != momentStop {
		j.err, j.failed = errors.New("cannot"), []int{1}
	}
	w.input(j)
}

func (w *walker) random() {
	i := w.rnd.IntN(len(w.s.workers))
	switch w.rnd.IntN(19) {
	case 17, 18:
		w.turn()
	case 0:
		w.pass(time.Duration(w.rnd.IntN(2000)) * time.Millisecond)
		w.due()
	case 1, 2, 3:
		w.look()
	case 4:
		if pid, ok := w.alive[i]; ok {
			w.die(i, pid)
		}
	case 5, 6:
		if len(w.jobs) > 0 {
			w.job()
		}
	case 7:
		w.input(inAck{})
	case 8:
		w.input(inDrill{fault: FaultKill, reply: w.ask()})
	case 9:
		w.input(inReplay{w.rnd.IntN(2)})
	case 10:
		w.input(inSockets{ok: w.rnd.IntN(2) == 0, err: errors.New("taken")})
	case 11:
		if w.rnd.IntN(8) == 0 {
			w.input(inLost{errors.New("removed")})
		}
	case 12:
		w.input(inSwitchover{to: i - 1, reply: w.ask()})
	case 13:
		w.input(inFailover{to: i - 1, reply: w.ask()})
	case 14:
		w.input(inPause{length: time.Duration(w.rnd.IntN(2)) * time.Second})
	case 15:
		w.input(inResume{})
	case 16:
		w.reload()
	}
}

// look moves the words a little, as members would.
func (w *walker) look() {
	in := inSeen{owner: w.s.owner, active: w.s.active, ring: w.s.ring}
	for i := range w.s.workers {
		if pid, ok := w.alive[i]; ok {
			in.seats = append(in.seats, seatView{seat: i + 1, pid: uint32(pid), ready: w.rnd.IntN(4) > 0, joined: uint64(pid)})
		}
	}
	switch {
	case in.owner.pid == 0 && len(in.seats) > 0:
		in.owner = hold{in.seats[w.rnd.IntN(len(in.seats))].pid, in.owner.term + 1}
		in.ring = append(in.ring[:len(in.ring):len(in.ring)], ringView{term: in.owner.term, pid: in.owner.pid, reason: role.ReasonCrash, claimed: w.now.Mono})
	case in.owner.pid != 0 && in.owner != in.active:
		in.active = in.owner
		in.ring = append([]ringView(nil), in.ring...)
		in.ring[len(in.ring)-1].activated = w.now.Mono
	case w.rnd.IntN(3) == 0:
		in.active.pid, in.owner.pid = 0, 0
	}
	w.input(in)
}

// input takes a step, checks its effects and plays the part of the loop.
// What an effect brings about comes after all effects of the step, as there.
func (w *walker) input(in input) {
	w.backlog = append(w.backlog, in)
	if len(w.backlog) > 1 {
		return // an effect at work
	}
	for len(w.backlog) > 0 {
		w.take(w.backlog[0])
		w.backlog = w.backlog[1:]
	}
}

func (w *walker) take(in input) {
	for _, e := range w.do(in) {
		switch e := e.(type) {
		case doReload:
			w.input(e.in)
		case doQueue:
			w.queued = append(w.queued, e.index)
		case doYield:
			w.turns--
		case doLaunch:
			w.turns--
			if pid, ok := w.alive[e.index]; ok {
				w.t.Errorf("a second process for place %d beside pid %d", e.index, pid)
			}
			if w.rnd.IntN(5) == 0 {
				w.input(inUnlaunched{e.index, errors.New("no"), w.rnd.Float64()})
				continue
			}
			w.pid++
			w.alive[e.index] = w.pid
			w.input(inLaunched{e.index, w.pid})
		case doAnswer:
			e.send()
		case doHit:
			w.input(inHit{term: e.term, zero: w.now.Mono})
		case doRenew:
			w.input(inRenewed{generation: w.s.generation + 1, segment: "next"})
		case doFetchSockets:
			w.input(inSockets{})
		case doBindSockets:
			w.input(inSockets{ok: w.rnd.IntN(2) == 0, err: errors.New("taken")})
		case doJob:
			w.jobs = append(w.jobs, inJob{kind: e.kind, t: e.t})
			w.tell(e)
		case doHire:
			w.input(inHooked{gate: w.rnd.IntN(2) == 0})
		case doClear:
			w.over = true
		}
	}
}

func (w *walker) tell(e doJob) {
	switch e.kind {
	case momentPromote:
		if w.told != 0 && w.told != e.t.Token || e.t.Token < w.last {
			w.t.Errorf("promote %s while told of %s, last %s", e.t.Token, w.told, w.last)
		}
		w.told, w.last = e.t.Token, e.t.Token
	case momentDemote:
		if w.told != e.t.Token {
			w.t.Errorf("demote %s while told of %s", e.t.Token, w.told)
		}
		w.told = 0
	case momentPrePromote:
		if w.told != 0 {
			w.t.Errorf("pre-promote %s while told of %s", e.t.Token, w.told)
		}
	case momentStop:
		if w.told != 0 {
			w.t.Errorf("stop while told of %s", w.told)
		}
		w.jobs = nil
		w.jobs = append(w.jobs, inJob{kind: momentStop})
	}
}
