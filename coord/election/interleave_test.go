//go:build interleave

package election

import (
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

// A walk runs a few processes of the real code over the same segment in every
// order of their steps: a step is what lies between two pause points, with one
// access to shared words in most. Only one process runs at a time, as a
// coroutine, so an order is exact and can be run again. At each step a process
// may also die, as far as deaths reach.
//
// Orders that lead to the same words by the same views are walked once: what a
// process does next is decided by what it saw at each of its steps (reads).
type walk struct {
	// deaths is how many processes may die by themselves.
	deaths int
	// preemptions bounds how often a process that could go on is not the next;
	// -1 is no bound. What is free costs nothing.
	preemptions int
	limit       int    // of runs, so that a test that grew too large says so
	grace       uint64 // 0 means 1

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

// The words of a situation, and what else a step can look at.
const (
	wordOwner = iota
	wordBeat0
	wordBeat1
	wordEpoch
	wordTicked
	wordForgiven
	wordActive
	wordControl
	wordGranted
	wordResign
	wordUntil
	wordCommit
	numWords
	lookDead  = numWords
	lookClock = numWords + 1
	lookMore  = numWords + 2
)

func look(words ...int) (mask uint32) {
	for _, w := range words {
		mask |= 1 << w
	}
	return mask
}

var (
	lookBeats   = look(wordBeat0, wordBeat1)
	lookControl = look(wordControl, wordGranted, wordResign, wordUntil)
)

// pointAny is before a step of a test's own, which may look at everything.
const pointAny = numPoints

// reads is what the step after a point looks at. Tests add points of their own.
var reads = []uint32{
	pointClaimEpoch:      look(wordEpoch),
	pointClaimOwner:      look(wordOwner),
	pointClaimBeat:       lookBeats,
	pointClaimControl:    lookControl,
	pointClaimProof:      look(wordForgiven, lookDead),
	pointClaimPrepare:    lookBeats,
	pointClaimPrepareCAS: lookBeats,
	pointClaimCommit:     look(wordCommit),
	pointClaimSeal:       lookBeats,
	pointClaimTake:       look(wordOwner),
	pointClaimAdopt:      look(wordCommit),
	pointClaimAdoptAgain: look(wordCommit),
	pointClaimAdoptOwner: look(wordOwner),
	pointClaimUnseal:     look(wordOwner),
	pointBeatOwner:       look(wordOwner),
	pointBeatEpoch:       look(wordEpoch),
	pointBeatWord:        lookBeats,
	pointBeat:            lookBeats,
	pointRelease:         look(wordOwner),
	pointEvictOwner:      look(wordOwner),
	pointEvictProof:      look(lookDead),
	pointEvict:           look(wordOwner),
	pointTickEpoch:       look(wordEpoch),
	pointTickLast:        look(wordTicked),
	pointTickClock:       look(lookClock),
	pointTickTake:        look(wordTicked),
	pointTickForgive:     look(wordForgiven),
	pointTickAdvance:     look(wordEpoch),
	pointPublishActive:   look(wordActive),
	pointFence:           look(wordOwner, wordActive, lookDead),
	pointPublishControl:  lookControl,
	pointPublish:         look(wordActive),
	pointPublishOwner:    look(wordOwner),
	pointPublishBack:     look(wordActive),
	pointRetire:          look(wordActive),
	pointAny:             1<<(lookMore+1) - 1,
}

// ownNames are those of the points after pointAny.
var ownNames []string

func newPoint(name string, mask uint32) point {
	reads, ownNames = append(reads, mask), append(ownNames, name)
	return point(len(reads) - 1)
}

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
	unborn bool        // another process has its pid
	done   bool
	dead   bool
	killed bool
	hung   bool   // waits for ever, and means to
	view   uint64 // digest of what it saw since base
	base   uint64 // of what it knows where its operation begins, or begins again
	// What the checks know of its operation under way.
	claimEpoch, beatEpoch uint64
	control               uint64 // when its claim began
	loaded, odd           bool   // the owner word; its term
}

type died struct{}

// pause hands over to the walk, which decides who goes on.
func (p *process) pause(at point) {
	p.at = at
	if at == pointClaimEpoch {
		p.control = p.w.seg.Control.Word.Load()
	}
	switch at {
	case pointClaimEpoch, pointBeatOwner, pointPublishActive:
		p.view, p.loaded = p.base, false // whatever it saw before counts no more
	case pointClaimOwner:
		p.claimEpoch = p.w.seg.Epoch.Load()
	case pointClaimBeat, pointBeatEpoch:
		if !p.loaded { // the step that has just ended did
			p.odd, p.loaded = p.w.seg.Owner.Load()&1 != 0, true
		}
	case pointBeatWord:
		p.beatEpoch = p.w.seg.Epoch.Load()
	}
	if !p.yield(at) {
		panic(died{})
	}
}

// know says that of all it saw p still uses these values, at this place of its
// body.
func (p *process) know(place int, values ...uint64) {
	p.base = uint64(place)
	for _, v := range values {
		p.base = mix(p.base, v)
	}
	p.view, p.claimEpoch, p.beatEpoch, p.control = p.base, 0, 0, 0
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
	timed  bool // the epoch is advanced by Tick alone
	still  bool // and nobody may find the owner stale
	plain  bool // claims go the long way at once, without takeVacant

	room    []choice
	running *process
	trace   []event
	wrong   string

	// What the checks remember.
	owner, active, commit, epoch uint64
	holder                       *process // who the owner word names: this process, not another with its pid
	born, life                   uint64   // epochs of the present owner's birth and last sign of life
	told                         uint64   // latest term whose claim returned success
	all                          uint64   // all of them, one bit each
	may                          map[*process]uint64
	quiet                        bool             // the role is closed, and nobody owned or acted since
	more                         []*atomic.Uint64 // further shared words
	known                        []uint64         // further facts of a test's own checks
	after, last                  func()           // its own checks, of a step and of the end
	clock                        int64
	began                        [2]int64 // when the last two epochs began
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

// isDead is a proof of death: the latest process with that pid is dead.
func (w *world) isDead(pid uint32) bool {
	dead := false
	for _, p := range w.procs {
		if p.pid == pid && !p.unborn {
			dead = p.dead
		}
	}
	return dead
}

func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// event is a step that was taken.
type event struct {
	pid   uint32
	at    point
	death bool
}

func (w *world) story() string {
	var b strings.Builder
	for _, e := range w.trace {
		switch {
		case e.death:
			fmt.Fprintf(&b, "\n\tP%d dies", e.pid)
		case e.at < numPoints:
			fmt.Fprintf(&b, "\n\tP%d %v", e.pid, e.at)
		case e.at > pointAny:
			fmt.Fprintf(&b, "\n\tP%d %s", e.pid, ownNames[e.at-pointAny-1])
		default:
			fmt.Fprintf(&b, "\n\tP%d goes on", e.pid)
		}
	}
	return b.String()
}

// choice is a step of a process, or its death.
type choice struct {
	proc  int
	death bool
}

func (w *world) choices(last, left int) []choice {
	all := w.room[:0]
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
		if !p.done && (p.killed || w.deaths > 0 && !p.free && !p.unborn) {
			all = append(all, choice{i, true})
		}
	}
	w.room = all
	return all
}

// mix adds v to a digest. (Two rounds of a 64-bit finalizer; what is compared
// are a few million situations of one test.)
func mix(h, v uint64) uint64 {
	h ^= v + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// see adds what p is about to look at to what it has seen.
func (p *process) see(mask uint32) {
	switch {
	case mask == 0:
		return
	case mask == lookBeats: // of its term, or of the coming one
		other := p.at == pointClaimPrepare || p.at == pointClaimPrepareCAS
		mask = 1 << wordBeat0
		if p.odd != other {
			mask = 1 << wordBeat1
		}
	}
	words := p.w.words()
	for i, w := range words {
		if mask>>i&1 != 0 {
			p.view = mix(p.view, w)
		}
	}
	if mask>>lookDead&1 != 0 {
		p.view = mix(p.view, p.w.deadOnes())
	}
	if mask>>lookClock&1 != 0 {
		p.view = mix(p.view, uint64(p.w.clock))
	}
	if mask>>lookMore&1 != 0 {
		for _, a := range p.w.more {
			p.view = mix(p.view, a.Load())
		}
	}
}

func (w *world) deadOnes() (bits uint64) {
	for i, p := range w.procs {
		if p.dead {
			bits |= 1 << i
		}
	}
	return bits
}

// step makes the choice happen. Unless fresh it has before, and what is seen is
// known.
func (w *world) step(c choice, fresh bool) {
	p := w.procs[c.proc]
	if c.death {
		w.trace = append(w.trace, event{p.pid, pointNone, true})
		if !p.killed {
			w.deaths--
		}
		p.dead, p.done = true, true
		p.stop()
		delete(w.may, p)
		return
	}
	w.trace = append(w.trace, event{p.pid, p.at, false})
	if fresh {
		p.see(reads[p.at])
	}
	w.running = p
	p.next()
	w.running = nil
	w.check(p)
}

func (w *world) situation(last, left int) situation {
	s := situation{words: w.words(), left: int8(left)}
	if left >= 0 {
		s.last = int8(last)
	}
	for i, p := range w.procs {
		switch {
		case p.dead:
			s.procs[i] = 1
		case p.done: // what it saw decides nothing any more
			s.procs[i] = 2
		default:
			h := mix(mix(mix(mix(p.view, uint64(p.at)), p.claimEpoch), p.beatEpoch), p.control)
			if p.killed {
				h = mix(h, 3)
			}
			s.procs[i] = h
		}
	}
	h := uint64(0)
	for i, p := range w.procs {
		h = mix(h, w.may[p])
		if w.holder == p {
			h = mix(h, uint64(i))
		}
	}
	for _, v := range [...]uint64{w.born, w.life, w.told, w.all, uint64(w.deaths), uint64(w.clock), uint64(w.began[0]), uint64(w.began[1])} {
		h = mix(h, v)
	}
	if w.quiet {
		h = mix(h, 4)
	}
	for _, a := range w.more {
		h = mix(h, a.Load())
	}
	for _, v := range w.known {
		h = mix(h, v)
	}
	s.checked = h
	return s
}

// every walks all orders of the world that begin makes, and returns the first
// one that breaks a promise, as a story; "" if none does.
func (k *walk) every(t *testing.T, begin func(*world)) (story string) {
	t.Helper()
	p := shm.DefaultParams()
	p.Grace, p.Fence, p.Cell = max(k.grace, 1), shm.FenceProcess, 8
	e := newElection(t, WithParams(p))
	first := (&world{seg: e.seg}).words()
	k.seen = map[situation]struct{}{}
	var path []turn
	var w *world
	pauseHook = func(at point) {
		if w.running != nil {
			w.running.pause(at)
		}
	}
	clockHook = func() int64 { return w.clock }
	fenceHook = func(_ *Election, p Promotion, active uint64) (bool, error) { return w.fence(p, active) }
	defer func() { pauseHook, fenceHook, clockHook = nil, nil, nil }()
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var trace []event
	var room []choice
	for {
		w = &world{
			e: e, seg: e.seg, deaths: k.deaths, tagged: true, sticky: true, may: map[*process]uint64{},
			trace: trace[:0], room: room,
		}
		w.reset(first)
		begin(w)
		w.owner, w.active, w.commit, w.epoch = e.seg.Owner.Load(), e.seg.Active.Load(), e.seg.Commit.Load(), e.seg.Epoch.Load()
		last, left := -1, k.preemptions
		for depth := 0; ; depth++ {
			again := depth < len(path)-1 // as in the run before
			if depth >= len(path) {
				s := w.situation(last, left)
				if _, known := k.seen[s]; known {
					break
				}
				k.seen[s] = struct{}{}
				path = append(path, turn{of: len(w.choices(last, left))})
				if path[depth].of == 0 {
					w.end()
					break
				}
			}
			here := &path[depth]
			if !again {
				here.choice = w.choices(last, left)[here.taken]
			}
			c := here.choice
			if !c.death {
				if left > 0 && last >= 0 && c.proc != last && !w.procs[last].done && !w.procs[c.proc].free && !w.procs[last].free {
					left--
				}
				last = c.proc
			}
			w.step(c, !again)
			if again {
				w.procs[c.proc].view = here.view
			}
			here.view = w.procs[c.proc].view
			if w.wrong != "" {
				break
			}
		}
		for _, p := range w.procs {
			p.stop()
		}
		k.runs++
		if w.wrong != "" {
			return w.wrong + w.story()
		}
		if k.limit > 0 && k.runs > k.limit {
			t.Fatalf("more than %d orders", k.limit)
		}
		trace, room = w.trace, w.room
		for len(path) > 0 && path[len(path)-1].taken+1 >= path[len(path)-1].of {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return ""
		}
		path[len(path)-1].taken++
	}
}

// turn is one step of the order that is walked: which of how many choices, and
// what the process had seen after it.
type turn struct {
	taken, of int
	choice    choice
	view      uint64
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
	if now := s.Epoch.Load(); now != w.epoch {
		if w.timed {
			w.epochChanged(p, now)
		}
		w.epoch = now
	}
	if w.after != nil {
		w.after()
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
	// Nobody but the owner makes its heartbeat look newer.
	limit := max(w.born, w.life)
	if p == w.holder {
		limit = max(limit, p.beatEpoch) // a beat that has not returned yet
	}
	if pid != 0 && uint64(beat.Epoch) > limit {
		w.fail("the heartbeat of P%d in term %d was moved to epoch %d; it was born in %d and showed life in %d", pid, term, beat.Epoch, w.born, w.life)
	}
}

func (w *world) epochChanged(p *process, epoch uint64) {
	tick := int64(w.seg.Tick())
	if int64(epoch)*tick > w.clock {
		w.fail("P%d begins epoch %d %v after the first", p.pid, epoch, time.Duration(w.clock))
	}
	if epoch > 2 && w.clock < w.began[1]+tick {
		w.fail("P%d begins epoch %d only %v after epoch %d began", p.pid, epoch, time.Duration(w.clock-w.began[1]), epoch-2)
	}
	w.began = [2]int64{w.clock, w.began[0]}
	if w.still && w.e.Stale() {
		w.fail("the owner, %d epochs behind, is condemned for what passed while nobody ran", w.e.Behind())
	}
}

func (w *world) ownerChanged(p *process, old, now uint64) {
	from, t0 := shm.UnpackOwner(old)
	to, t1 := shm.UnpackOwner(now)
	epoch := w.seg.Epoch.Load()
	switch {
	case to == 0 && t1 == t0:
		if p != w.holder && !w.holder.dead {
			w.fail("P%d takes the lease of P%d, which lives, away", p.pid, from)
		}
		return
	case to != p.pid || t1 != t0+1:
		w.fail("P%d changes the owner word from (%d,%d) to (%d,%d)", p.pid, from, t0, to, t1)
	case from != 0 && !w.holder.dead && epoch <= w.life+w.seg.Grace():
		if w.sticky || to > from {
			w.fail("P%d takes term %d in epoch %d from P%d, which showed life in epoch %d", p.pid, t1, epoch, from, w.life)
		}
	}
	if c := w.seg.Control.Word.Load(); c&^gateBit != 0 && c == p.control {
		w.fail("P%d is granted term %d; it began when the control word forbade it", p.pid, t1)
	}
	w.holder, w.born, w.life = p, epoch, p.claimEpoch
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
	for other, term := range w.may {
		if w.fenced && other != p {
			w.fail("P%d publishes term %d while P%d may act in term %d", to, t1, other.pid, term)
		}
	}
	w.may[p] = t1
}

// granted is called when a claim has reported success.
func (w *world) granted(p *process, term uint64) {
	if w.all&(1<<term) != 0 {
		w.fail("P%d is told that it owns term %d, and so was another", p.pid, term)
	}
	w.all |= 1 << term
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

// published is called when p has changed the payload as owner of term.
func (w *world) published(p *process, term uint64) {
	if w.told > term {
		w.fail("P%d publishes in term %d after somebody was told that it owns term %d", p.pid, term, w.told)
	}
}

// leads is called when p was promoted.
func (w *world) leads(p *process) {
	if w.quiet {
		w.fail("P%d leads, and the role was closed and quiet", p.pid)
	}
}

// stopped is called when a lead has returned.
func (w *world) stopped(p *process) { delete(w.may, p) }

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
		if x.pid == pid && !x.unborn {
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
		if !p.done && !p.hung && !p.unborn {
			w.fail("P%d waits for ever", p.pid)
			return
		}
	}
	if w.last != nil {
		w.last()
	}
	if !w.tagged {
		return
	}
	w.seg.Control.Word.Store(0)
	before := w.words()
	_, term := w.e.Owner()
	g, err := w.e.Claim(Attempt{PID: 99, Seat: -1, Grace: w.seg.Grace(), Dead: func(uint32) bool { return true }})
	if err != nil || g.Term != term+1 {
		w.fail("whoever comes last is refused with proof: %+v %v", g, err)
	}
	w.reset(before)
	for range 2*w.seg.Grace() + 1 {
		w.e.TickEpoch()
	}
	g, err = w.e.Claim(Attempt{PID: 99, Seat: -1, Grace: w.seg.Grace()})
	if err != nil || g.Term != term+1 {
		w.fail("whoever comes last is refused by staleness: %+v %v", g, err)
	}
	w.reset(before)
}

// none asserts that no order breaks a promise.
func (k *walk) none(t *testing.T, begin func(*world)) {
	t.Helper()
	if story := k.every(t, begin); story != "" {
		t.Fatal(story)
	}
	t.Logf("%d situations, %d runs", len(k.seen), k.runs)
}

// some asserts that an order does: that the walk is able to find the fault.
func (k *walk) some(t *testing.T, begin func(*world)) {
	t.Helper()
	story := k.every(t, begin)
	if story == "" {
		t.Fatalf("%d situations, %d runs, and the fault was not found", len(k.seen), k.runs)
	}
	t.Logf("found after %d runs: %s", k.runs, story)
}
