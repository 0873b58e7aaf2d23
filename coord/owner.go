package coord

import (
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// watch is a candidate's hold on the process that owns the lease: opened when
// it was first seen as owner, so that its death is noticed whatever becomes of
// its pid. Only the campaign's goroutine uses it. The zero value watches
// nobody.
//
// Its end is noticed in three ways, each of which is enough and leads to the
// same judgement of the whole claim condition: the kernel fires the owner's
// robust words before it tears the process down (vigil: a hint); the pidfd
// becomes readable when the process is gone (handle); and the campaign looks
// once a tick.
type watch struct {
	pid    uint32
	term   uint64
	id     proc.Identity // zero: the owner has no seat, only its beats count
	handle *proc.Handle  // nil: unknown, dead already, or not to be seen from here
	stop   chan struct{} // ends the goroutine that waits for the handle, nil: there is none
	vigil  heartbeat.Vigil
	near   bool   // the vigil is to wake the campaign
	ear    *ear   // waits for the vigil where the campaign cannot
	hinted int64  // when the hint was noticed, CLOCK_MONOTONIC ns; 0 not
	helped bool   // to free its memory, at the hint
	dead   bool   // proven, as far as the segment asks for
	past   *watch // on who owned before, to be dropped when there is time; nil: none
}

// follow turns to the owner of term. The same owner is not looked up again,
// unless it had no seat. One that was evicted is kept for as long as the active
// word names it: it must be dead before this member leads.
func (w *watch) follow(m *Member, pid uint32, term uint64) {
	if pid == 0 && w.pid != 0 {
		if apid, aterm := m.elec.Active(); apid == w.pid && aterm == w.term {
			pid, term = apid, aterm
		}
	}
	if w.pid == pid && w.term == term && (pid == 0 || w.id != (proc.Identity{})) {
		return
	}
	w.leave()
	w.pid, w.term = pid, term
	if pid == 0 || pid == m.pid {
		return
	}
	o, ok := ownerOf(m.table.Members(), pid)
	if !ok {
		return
	}
	w.id = o.Identity
	if m.detect.robust {
		w.vigil = m.seat.Vigil(o)
		w.listens(m)
		// A thread that ended before the arming fires nothing any more, while
		// its process may not be gone yet: looked for once, after the arming.
		if w.hinted == 0 && w.vigil.Keeps() && proc.ThreadEnded(o.Identity.PID, int(o.Robust)) {
			w.hinted = shm.MonoNow()
		}
	}
	if m.detect.pidfd {
		h, err := proc.OpenHandle(w.id)
		if err == nil {
			w.handle = h
			w.listens(m)
			if !w.vigil.Keeps() {
				w.await(m)
			}
			return
		}
	}
	if proc.Judge(w.id) == proc.Gone {
		w.died(m)
	}
}

// fresh is an owner that has just taken over from the one that is watched. It is
// left alone for its first moment: to turn to it takes longer than its claim and
// its work's first write, which on a machine of few processors would wait for
// all those that turn.
type fresh struct {
	term  uint64
	since int64 // CLOCK_MONOTONIC ns
}

// left is for how long the owner is to be left alone, 0 or less: no longer.
func (f *fresh) left(w *watch, me, pid uint32, term uint64, now int64) time.Duration {
	if w.pid == 0 || pid == 0 || pid == me || pid == w.pid && term == w.term {
		return 0
	}
	if f.term != term {
		f.term, f.since = term, now
	}
	return firstMoment - time.Duration(now-f.since)
}

// await makes the handle stir the campaign when the process is gone. While
// there is a hint to come first, that is not needed, and would only take the
// processor from whoever takes over.
func (w *watch) await(m *Member) {
	if w.handle == nil || w.stop != nil {
		return
	}
	h, stop := w.handle, make(chan struct{})
	w.stop = stop
	m.wg.Go(func() {
		select {
		case <-h.Done():
			m.onSeat((*heartbeat.Seat).Interrupt)
		case <-stop:
		}
	})
}

// listens arms the vigil and notes the hint. It is called before each look,
// because a thread that ended before the arming fires nothing.
func (w *watch) listens(m *Member) {
	if w.vigil.Arm() && w.hinted == 0 {
		w.hinted = shm.MonoNow()
	}
}

// dying reports whether there is a hint that the owner of term is about to
// end: the thread that beats for it has ended.
func (w *watch) dying(pid uint32, term uint64) bool {
	return w.hinted != 0 && pid == w.pid && term == w.term
}

// provenDead says whether the owner pid is dead, as far as the segment's proof
// asks for. It is called after the owner word was loaded.
func (w *watch) provenDead(m *Member, pid uint32) bool {
	if pid == 0 || pid == m.pid {
		return false
	}
	if pid != w.pid || w.id == (proc.Identity{}) {
		o, ok := ownerOf(m.table.Members(), pid)
		return ok && enough(m.params.Proof, proc.Judge(o.Identity))
	}
	dead := w.dead
	switch {
	case dead:
	case w.handle == nil:
		dead = enough(m.params.Proof, proc.Judge(w.id))
	case m.params.Proof == shm.ProofExiting:
		dead = enough(m.params.Proof, w.handle.Judge())
	default:
		dead = w.handle.Gone()
	}
	if dead {
		w.died(m)
	}
	return dead
}

// died notes that the owner is dead, and since when that could be known.
func (w *watch) died(m *Member) {
	if !w.dead {
		at := shm.MonoNow()
		if w.hinted != 0 {
			at = w.hinted
		}
		m.elec.StampEnd(w.term, at)
	}
	w.dead = true
}

// attend waits a moment for the proof that a hint has announced, in place of
// the sleep until the next event; false if there is no hint. before is how
// many candidates go first: those further down the order look when the others
// have had time to. A process that is gone ends the wait at once; nothing tells
// when one is exiting, so that is looked for again and again, ever more
// rarely, and in the end no more: an execve fires the words, too.
func (w *watch) attend(m *Member, count uint32, before int) bool {
	if w.hinted == 0 || w.dead {
		return false
	}
	ago := time.Duration(shm.MonoNow() - w.hinted)
	if left := time.Duration(before)*hintStep - ago; left > 0 {
		m.rest(w, count, min(left, m.params.Tick))
		return true
	}
	if ago > hintHolds {
		w.await(m)
		return false
	}
	if w.handle != nil && m.params.Proof == shm.ProofGone && !w.helped {
		w.helped = true
		w.handle.FreeMemory()
	}
	d := 2 * time.Millisecond // other events are noticed so much later
	if m.params.Proof == shm.ProofExiting || w.handle == nil {
		d = min(max(ago/8, 30*time.Microsecond), d)
	}
	if w.handle != nil {
		w.handle.Pause(min(d, m.params.Tick))
	} else {
		m.rest(w, count, min(d, m.params.Tick))
	}
	return true
}

const (
	hintStep  = 10 * time.Millisecond
	hintHolds = 2 * time.Second // the kernel tears down some 40 GiB meanwhile
)

func enough(proof uint8, v proc.Verdict) bool {
	return v == proc.Gone || v == proc.Exiting && proof == shm.ProofExiting
}

// leave turns away from the process and keeps what is held of it, since to let
// go takes time that a claim is in need of, until settle.
func (w *watch) leave() {
	w.settle()
	old := *w
	*w = watch{}
	if old.ear != nil || old.stop != nil || old.handle != nil {
		w.past = &old
	}
}

// settle lets go what leave kept.
func (w *watch) settle() {
	if w.past != nil {
		w.past.drop()
		w.past = nil
	}
}

// drop lets the process go.
func (w *watch) drop() {
	w.settle()
	if w.ear != nil {
		w.ear.close()
		w.ear = nil
	}
	if w.stop != nil {
		close(w.stop)
		w.stop = nil
	}
	if w.handle != nil {
		w.handle.Close()
		w.handle = nil
	}
}

// ownerOf is who owns under pid: of several seats with that pid the one that
// joined last, since whoever gets a dead member's pid joins before it claims.
func ownerOf(members []heartbeat.Member, pid uint32) (owner heartbeat.Member, ok bool) {
	for i := range members {
		if o := &members[i]; uint32(o.Identity.PID) == pid && (!ok || o.JoinSeq > owner.JoinSeq) {
			owner, ok = *o, true
		}
	}
	return owner, ok
}

// ear waits for a vigil on a thread of its own, and stirs the member when it
// fires: for systems on which nobody can wait for two words at once.
type ear struct {
	vigil  heartbeat.Vigil
	closed atomic.Bool
	done   chan struct{}
}

func newEar(m *Member, v heartbeat.Vigil) *ear {
	e := &ear{vigil: v, done: make(chan struct{})}
	m.wg.Go(func() {
		defer close(e.done)
		for !e.closed.Load() && m.trouble() == nil {
			if e.vigil.Arm() {
				m.onSeat((*heartbeat.Seat).Interrupt)
				return
			}
			if !e.vigil.Keeps() || e.vigil.Wait(time.Second) != nil {
				return
			}
		}
	})
	return e
}

// close ends the wait, and returns when it has ended.
func (e *ear) close() {
	e.closed.Store(true)
	for {
		e.vigil.Disturb()
		select {
		case <-e.done:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
