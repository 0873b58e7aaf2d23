//go:build interleave

package election

import (
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/coord/shm"
)

// A walk runs a few processes of the real code over the same segment in every
// order of their steps: a step is what lies between two pause points, with one
// access to shared words in most. Only one process runs at a time, as a
// coroutine, so an order is exact and can be run again. At each step a process
// may also die, as far as deaths reach.
//
// Orders that lead to the same words by the same views are walked once: what a
// process does next is decided by the words that it saw at each of its steps.
type walk struct {
	// deaths is how many processes may die by themselves.
	deaths int
	// preemptions bounds how often a process that could go on is not the next;
	// -1 is no bound. What is free costs nothing.
	preemptions int
	limit       int // of runs, so that a test that grew too large says so

	seen map[situation]struct{}
	runs int
}

// situation decides all that can follow.
type situation struct {
	words   [numWords]uint64
	procs   [5]uint64
	checked uint64
	last    int8
	left    int8
}

const numWords = 12

// process is one of the processes of a world.
type process struct {
	w    *world
	pid  uint32
	free bool // its turns are no preemptions: the clock, the kernel
	body func(*process)

	next   func() (point, bool)
	stop   func()
	yield  func(point) bool
	at     point
	ready  func() bool // nil: always
	done   bool
	dead   bool
	killed bool
	view   uint64 // digest of all that it saw
	// What the checks know of its operation under way.
	claimEpoch, beatEpoch uint64
}

type died struct{}

// pause hands over to the walk, which decides who goes on.
func (p *process) pause(at point) {
	p.at = at
	switch at {
	case pointClaimOwner:
		p.claimEpoch = p.w.seg.Epoch.Load()
	case pointBeatWord:
		p.beatEpoch = p.w.seg.Epoch.Load()
	}
	if !p.yield(at) {
		panic(died{})
	}
}

// await pauses until ready.
func (p *process) await(at point, ready func() bool) {
	p.ready = ready
	p.pause(at)
	p.ready = nil
}

// world is one run: a segment, its processes, and the checks.
type world struct {
	e      *Election
	seg    *shm.Segment
	procs  []*process
	deaths int
	fenced bool // leaders must not overlap
	tagged bool // heartbeats carry tags; not those of a naive protocol
	sticky bool // nobody preempts

	running *process
	trace   []string
	wrong   string

	// What the checks remember.
	owner, active, commit uint64
	born, life            uint64 // epochs of the present owner's birth and last sign of life
	told                  uint64 // latest term whose claim returned success
	may                   map[uint32]uint64
}

func (w *world) words() (v [numWords]uint64) {
	s := w.seg
	return [...]uint64{
		s.Owner.Load(), s.Heartbeat[0].Load(), s.Heartbeat[1].Load(), s.Epoch.Load(), s.TickedAt.Load(), s.Forgiven.Load(),
		s.Active.Load(), s.Control.Word.Load(), s.Control.Granted.Load(), s.Control.Resign.Load(), s.Control.Until.Load(), s.Commit.Load(),
	}
}

// reset brings the segment back to where it was when it was created.
func (w *world) reset(words [numWords]uint64) {
	s := w.seg
	for i, a := range [...]interface{ Store(uint64) }{
		s.Owner, s.Heartbeat[0], s.Heartbeat[1], s.Epoch, s.TickedAt, s.Forgiven,
		s.Active, s.Control.Word, s.Control.Granted, s.Control.Resign, s.Control.Until, s.Commit,
	} {
		a.Store(words[i])
	}
}

func (w *world) add(pid uint32, body func(*process)) *process {
	p := &process{w: w, pid: pid, body: body}
	w.procs = append(w.procs, p)
	p.next, p.stop = iter.Pull(func(yield func(point) bool) {
		defer func() {
			p.done = true
			if r := recover(); r != nil && r != (died{}) {
				panic(r)
			}
		}()
		p.yield = yield
		if yield(pointNone) {
			body(p)
		}
	})
	p.next()
	return p
}

func (w *world) isDead(pid uint32) bool {
	for _, p := range w.procs {
		if p.pid == pid {
			return p.dead
		}
	}
	return false
}

func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// choice is a step of a process, or its death.
type choice struct {
	proc  int
	death bool
}

func (w *world) choices(last, left int) (all []choice) {
	canGoOn := last >= 0 && !w.procs[last].done && (w.procs[last].ready == nil || w.procs[last].ready())
	for i, p := range w.procs {
		if p.done || p.ready != nil && !p.ready() {
			continue
		}
		if left == 0 && canGoOn && i != last && !p.free && !w.procs[last].free {
			continue
		}
		all = append(all, choice{i, false})
	}
	for i, p := range w.procs {
		if !p.done && (p.killed || w.deaths > 0 && !p.free) {
			all = append(all, choice{i, true})
		}
	}
	return all
}

var seed = maphash.MakeSeed()

func (w *world) step(c choice) {
	p := w.procs[c.proc]
	if c.death {
		w.trace = append(w.trace, fmt.Sprintf("P%d dies", p.pid))
		if !p.killed {
			w.deaths--
		}
		p.dead, p.done = true, true
		p.stop()
		delete(w.may, p.pid)
		return
	}
	w.trace = append(w.trace, fmt.Sprintf("P%d %v", p.pid, p.at))
	var dead uint64
	for i, q := range w.procs {
		if q.dead {
			dead |= 1 << i
		}
	}
	p.view = maphash.Comparable(seed, struct {
		view, dead uint64
		words      [numWords]uint64
	}{p.view, dead, w.words()})
	w.running = p
	p.next()
	w.running = nil
	w.check(p)
}

func (w *world) situation(last, left int) situation {
	s := situation{words: w.words(), last: int8(last), left: int8(left)}
	for i, p := range w.procs {
		state := uint64(p.at)
		if p.done {
			state |= 1 << 8
		}
		if p.dead {
			state |= 1 << 9
		}
		if p.killed {
			state |= 1 << 10
		}
		view := p.view
		if p.done {
			view = 0 // what it saw decides nothing any more
		}
		s.procs[i] = maphash.Comparable(seed, [2]uint64{view, state})
	}
	var may uint64
	for pid, term := range w.may {
		may += maphash.Comparable(seed, [2]uint64{uint64(pid), term})
	}
	s.checked = maphash.Comparable(seed, [6]uint64{w.born, w.life, w.told, may, uint64(w.deaths), w.commit})
	return s
}

// every walks all orders of the world that begin makes, and returns the first
// one that breaks a promise, as a story; "" if none does.
func (k *walk) every(t *testing.T, begin func(*world)) (story string) {
	t.Helper()
	p := shm.DefaultParams()
	p.Grace, p.Fence, p.Cell = 1, shm.FenceProcess, 8
	e := newElection(t, WithParams(p))
	first := (&world{seg: e.seg}).words()
	k.seen = map[situation]struct{}{}
	var path, width []int
	var w *world
	pauseHook = func(at point) {
		if w.running != nil {
			w.running.pause(at)
		}
	}
	fenceHook = func(_ *Election, p Promotion, active uint64) (bool, error) { return w.fence(p, active) }
	t.Cleanup(func() { pauseHook, fenceHook, clockHook = nil, nil, nil })
	for {
		w = &world{e: e, seg: e.seg, deaths: k.deaths, tagged: true, sticky: true, may: map[uint32]uint64{}}
		w.reset(first)
		begin(w)
		w.owner, w.active, w.commit = e.seg.Owner.Load(), e.seg.Active.Load(), e.seg.Commit.Load()
		last, left := -1, k.preemptions
		for depth := 0; ; depth++ {
			choices := w.choices(last, left)
			if depth >= len(path) {
				s := w.situation(last, left)
				if _, known := k.seen[s]; known {
					break
				}
				k.seen[s] = struct{}{}
				if len(choices) == 0 {
					w.end()
					break
				}
				path, width = append(path, 0), append(width, 0)
			}
			width[depth] = len(choices)
			c := choices[path[depth]]
			if !c.death {
				if left > 0 && last >= 0 && c.proc != last && !w.procs[last].done && !w.procs[c.proc].free && !w.procs[last].free {
					left--
				}
				last = c.proc
			}
			w.step(c)
			if w.wrong != "" {
				break
			}
		}
		for _, p := range w.procs {
			p.stop()
		}
		k.runs++
		if w.wrong != "" {
			return w.wrong + "\n\t" + strings.Join(w.trace, "\n\t")
		}
		if k.limit > 0 && k.runs > k.limit {
			t.Fatalf("more than %d orders", k.limit)
		}
		for len(path) > 0 && path[len(path)-1]+1 >= width[len(path)-1] {
			path, width = path[:len(path)-1], width[:len(width)-1]
		}
		if len(path) == 0 {
			return ""
		}
		path[len(path)-1]++
	}
}

// check looks at what the step of p changed.
func (w *world) check(p *process) {
	s := w.seg
	if now := s.Owner.Load(); now != w.owner {
		w.ownerChanged(p, w.owner, now)
		w.owner = now
	}
	if now := s.Active.Load(); now != w.active {
		w.activeChanged(p, w.active, now)
		w.active = now
	}
	if now := s.Commit.Load(); now != w.commit {
		if old, c := shm.UnpackCommit(w.commit), shm.UnpackCommit(now); c.Term < old.Term {
			w.fail("P%d puts term %d into the commit word after term %d", p.pid, c.Term, old.Term)
		}
		w.commit = now
	}
	if !w.tagged {
		return
	}
	pid, term := shm.UnpackOwner(w.owner)
	beat := shm.UnpackHeartbeat(s.Heartbeat[term&1].Load())
	if beat.Tag != uint32(term) {
		w.fail("the heartbeat of term %d belongs to term %d", term, beat.Tag)
	}
	if p.at == pointNone && p.beatEpoch > w.life { // its own beat, see beaten
		return
	}
	if limit := max(w.born, w.life, p.beatEpochIn(pid)); pid != 0 && uint64(beat.Epoch) > limit {
		w.fail("the heartbeat of P%d in term %d was moved to epoch %d; it was born in %d and showed life in %d", pid, term, beat.Epoch, w.born, w.life)
	}
}

// beatEpochIn is the epoch of a beat that p has just made as owner.
func (p *process) beatEpochIn(owner uint32) uint64 {
	if p.pid == owner {
		return p.beatEpoch
	}
	return 0
}

func (w *world) ownerChanged(p *process, old, now uint64) {
	from, t0 := shm.UnpackOwner(old)
	to, t1 := shm.UnpackOwner(now)
	epoch := w.seg.Epoch.Load()
	switch {
	case to == 0 && t1 == t0:
		if from != p.pid && !w.isDead(from) {
			w.fail("P%d takes the lease of P%d, which lives, away", p.pid, from)
		}
		return
	case to != p.pid || t1 != t0+1:
		w.fail("P%d changes the owner word from (%d,%d) to (%d,%d)", p.pid, from, t0, to, t1)
	case from != 0 && !w.isDead(from) && epoch <= w.life+w.seg.Grace():
		if w.sticky || to > from {
			w.fail("P%d takes term %d in epoch %d from P%d, which showed life in epoch %d", p.pid, t1, epoch, from, w.life)
		}
	}
	w.born, w.life = epoch, p.claimEpoch
}

func (w *world) activeChanged(p *process, old, now uint64) {
	from, t0 := shm.UnpackOwner(old)
	to, t1 := shm.UnpackOwner(now)
	if t1 < t0 || to != 0 && t1 == t0 {
		w.fail("P%d changes the active word from (%d,%d) to (%d,%d)", p.pid, from, t0, to, t1)
	}
	if to == 0 {
		return
	}
	for pid, term := range w.may {
		if w.fenced && pid != to {
			w.fail("P%d publishes term %d while P%d may act in term %d", to, t1, pid, term)
		}
	}
	w.may[to] = t1
}

// granted is called when a claim has reported success.
func (w *world) granted(p *process, term uint64) {
	if term <= w.told {
		w.fail("P%d is told that it owns term %d after somebody was told of term %d", p.pid, term, w.told)
	}
	w.told = max(w.told, term)
	if c := shm.UnpackCommit(w.seg.Commit.Load()); uint64(c.Term) < term {
		w.fail("P%d is told that it owns term %d, and term %d may still publish", p.pid, term, c.Term)
	}
}

// beaten is called when a beat has reported success.
func (w *world) beaten(p *process, term uint64) {
	if pid, t := shm.UnpackOwner(w.seg.Owner.Load()); pid == p.pid && t == term {
		w.life = max(w.life, p.beatEpoch)
	}
}

// stopped is called when a lead has returned.
func (w *world) stopped(p *process) { delete(w.may, p.pid) }

// fence stands in for the kernel and /proc in step P2.
func (w *world) fence(p Promotion, active uint64) (changed bool, err error) {
	me := w.running
	pid, _ := shm.UnpackOwner(active)
	moved := func() bool { return w.seg.Active.Load() != active }
	if w.seg.Owner.Load() != shm.PackOwner(p.PID, p.Term) {
		return false, ErrLost
	}
	me.pause(pointFence)
	if moved() {
		return true, nil
	}
	me.pause(pointFence)
	for _, x := range w.procs {
		if x.pid == pid {
			x.killed = true
		}
	}
	me.await(pointFence, func() bool { return moved() || w.isDead(pid) })
	return !w.isDead(pid), nil
}

// end: everybody is done or dead. Whoever wants the lease now gets it, by
// proof if there is one, and by staleness if there is none.
func (w *world) end() {
	for _, p := range w.procs {
		if !p.done {
			w.fail("P%d waits for ever at %q", p.pid, p.at)
			return
		}
	}
	if !w.tagged {
		return
	}
	before := w.words()
	_, term := w.e.Owner()
	g, err := w.e.Claim(Attempt{PID: 99, Seat: -1, Grace: 1, Dead: w.isDead})
	if err != nil || g.Term != term+1 {
		w.fail("whoever comes last is refused with proof: %+v %v", g, err)
	}
	w.reset(before)
	for range 3 {
		w.e.TickEpoch()
	}
	g, err = w.e.Claim(Attempt{PID: 99, Seat: -1, Grace: 1})
	if err != nil || g.Term != term+1 {
		w.fail("whoever comes last is refused by staleness: %+v %v", g, err)
	}
	w.reset(before)
}

func (k *walk) none(t *testing.T, begin func(*world)) {
	t.Helper()
	if story := k.every(t, begin); story != "" {
		t.Fatal(story)
	}
	t.Logf("%d situations, %d runs", len(k.seen), k.runs)
}

func (k *walk) some(t *testing.T, begin func(*world)) {
	t.Helper()
	story := k.every(t, begin)
	if story == "" {
		t.Fatalf("%d situations, %d runs, and the fault was not found", len(k.seen), k.runs)
	}
	t.Logf("found after %d runs: %s", k.runs, story)
}

// claimer claims once, beats, and releases.
func claimer(a Attempt, beats int) func(*process) {
	return func(p *process) {
		a := a
		a.PID, a.Seat, a.Grace = p.pid, -1, p.w.seg.Grace()
		g, err := p.w.e.Claim(a)
		if err != nil {
			return
		}
		p.w.granted(p, g.Term)
		for range beats {
			p.pause(pointNone)
			if p.w.e.Beat(p.pid, g.Term) != nil {
				break
			}
			p.w.beaten(p, g.Term)
		}
		p.pause(pointNone)
		_ = p.w.e.Release(p.pid, g.Term)
	}
}

// ticks advances the epoch n times.
func ticks(n int) func(*process) {
	return func(p *process) {
		for i := range n {
			if i > 0 {
				p.pause(pointNone)
			}
			p.w.seg.Epoch.Add(1)
		}
	}
}

var _ = slices.Contains[[]int]
