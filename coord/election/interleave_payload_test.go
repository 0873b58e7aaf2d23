//go:build interleave

package election_test

import (
	"sync/atomic"
	"testing"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/lease"
	"github.com/standbyd/standbyd/coord/shm"
)

// The same walk over coord/lease: writers and readers of a payload of one word,
// while the lease is taken from one by the other anywhere.

// points are those of coord/lease, in their order.
var points = func() (all [lease.NumPoints]election.Point) {
	const owner, commit, more = 1, 2, 4
	looks := [lease.NumPoints]int{
		commit, more, commit, owner, // read
		owner, commit, owner, more, commit, // write
		0, commit, commit, commit, // fill, publish
	}
	for i, name := range lease.PointNames {
		all[i] = election.NewPoint(name, looks[i]&owner != 0, looks[i]&commit != 0, looks[i]&more != 0)
	}
	return all
}()

// ledger is what must be true of the payload.
type ledger struct {
	w         *election.World
	committed uint64 // commit word
	value     uint64 // of the cell that it names
	written   uint64 // writes that reported success
	told      uint64
	shared    bool // several handles set values: they do not count up
}

const usedSlots = 3

func cellOf(s *shm.Segment, commit uint64) *atomic.Uint64 {
	c := shm.UnpackCommit(commit)
	return &s.Writers[c.Slot].Cells[c.Cell][0]
}

// keep makes a ledger of a world and brings its slots back to how they were
// created.
func keep(w *election.World) *ledger {
	s := w.Segment()
	var words []*atomic.Uint64
	for i := range usedSlots {
		wr := &s.Writers[i]
		for _, a := range []*atomic.Uint64{wr.Phase, wr.PID, wr.Start, wr.Boot, wr.PIDNS, wr.Check} {
			a.Store(0)
		}
		words = append(words, wr.Phase)
		for c := range wr.Cells {
			wr.Cells[c][0].Store(0)
			words = append(words, &wr.Cells[c][0])
		}
	}
	l := &ledger{w: w, committed: s.Commit.Load()}
	known := make([]uint64, 2)
	w.Also(words, known, func() {
		commit := s.Commit.Load()
		value := cellOf(s, commit).Load()
		if commit == l.committed && value != l.value {
			w.Fail("the committed value was changed from %d to %d", l.value, value)
		}
		old, now := shm.UnpackCommit(l.committed), shm.UnpackCommit(commit)
		if now.Seq != old.Seq && uint64(now.Term) < l.told {
			w.Fail("term %d publishes after somebody was told that it owns term %d", now.Term, l.told)
		}
		if now.Seq == old.Seq && value != l.value {
			w.Fail("an adoption changes the value from %d to %d", l.value, value)
		}
		l.committed, l.value = commit, value
		known[0], known[1] = l.value, l.written<<32|l.told
	}, func() {
		// A write that died after its publish was not counted: at most one.
		if !l.shared && l.value < l.written {
			w.Fail("%d writes were reported and %d stand", l.written, l.value)
		}
	})
	lease.PauseHook = func(i int) {
		if p := w.Running(); p != nil {
			p.Pause(points[i])
		}
	}
	return l
}

// adds claims, and n times adds one to the value as its owner.
func (l *ledger) adds(n int) func(*election.Process) {
	return func(p *election.Process) {
		g, err := l.w.Election().Claim(p.Attempt(election.LowestPID))
		if err != nil {
			return
		}
		p.Granted(g.Term)
		l.told = max(l.told, g.Term)
		p.Know(1, g.Term)
		l.add(p, lease.PayloadOf(l.w.Segment()), g.Term, n)
		p.Know(2, g.Term)
		_ = l.w.Election().Release(p.PID(), g.Term)
	}
}

func (l *ledger) add(p *election.Process, payload *lease.Payload, term uint64, n int) {
	c, err := lease.ClaimOf[uint64](payload, lease.Held{PID: p.PID(), Term: term})
	if err != nil {
		panic(err)
	}
	for range n {
		v, err := c.Read()
		if err != nil {
			return
		}
		if c.Write(v+1) != nil {
			return
		}
		l.written++
	}
}

// sets writes its values in the term that pid 2 owns from the start.
func (l *ledger) sets(values ...uint64) func(*election.Process) {
	return func(p *election.Process) {
		c, err := lease.ClaimOf[uint64](lease.PayloadOf(l.w.Segment()), lease.Held{PID: p.PID(), Term: 1})
		if err != nil {
			panic(err)
		}
		for _, v := range values {
			if c.Write(v) != nil {
				return
			}
		}
	}
}

// reads takes a snapshot: a value that stood at some moment of it.
func (l *ledger) reads(p *election.Process) {
	view, err := lease.ViewOf[uint64](lease.PayloadOf(l.w.Segment()))
	if err != nil {
		panic(err)
	}
	p.Pause(election.PointAny)
	before := l.value
	v, _ := view.Snapshot()
	if v < before || v > l.value {
		l.w.Fail("a snapshot returned %d; the value was %d when it began and is %d", v, before, l.value)
	}
}

// Two owners in turn, one of which dies anywhere: what a term published is
// never changed by an earlier one, and no write that was reported is lost.
func TestInterleavePayloadTwoOwners(t *testing.T) {
	defer func() { lease.PauseHook = nil }()
	election.WalkNone(t, 1, func(w *election.World) {
		l := keep(w)
		w.Preempting()
		w.Add(2, l.adds(2))
		w.Add(1, l.adds(1))
	})
}

// A reader, while the owner writes three times: two of them go to one cell.
func TestInterleavePayloadReader(t *testing.T) {
	defer func() { lease.PauseHook = nil }()
	election.WalkNone(t, 0, func(w *election.World) {
		l := keep(w)
		w.Owns(w.Add(2, l.sets(1, 2, 3)))
		w.Add(90, l.reads)
	})
}

// A reader, while another takes the lease and goes on from what it adopts.
func TestInterleavePayloadReaderOfTwoOwners(t *testing.T) {
	defer func() { lease.PauseHook = nil }()
	election.WalkNone(t, 0, func(w *election.World) {
		l := keep(w)
		w.Preempting()
		w.Owns(w.Add(2, l.sets(1)))
		w.Add(1, l.adds(1))
		w.Add(90, l.reads)
	})
}

// Two handles of one owner write at once, and another takes the lease: what
// stands is a value that was written as a whole, and each handle's own cells
// are its own.
func TestInterleavePayloadTwoHandlesOfOneOwner(t *testing.T) {
	defer func() { lease.PauseHook = nil }()
	election.WalkNone(t, 0, func(w *election.World) {
		l := keep(w)
		l.shared = true
		w.Preempting()
		owner := w.Add(2, l.sets(10, 11))
		w.Owns(owner)
		w.Add(2, l.sets(20, 21))
		w.Add(1, l.adds(1))
	})
}

// Writers that fill the first cell of their slot, whatever is committed.
func TestInterleaveFindsAWriteIntoTheCommittedCell(t *testing.T) {
	defer func() { lease.PauseHook = nil }()
	fill := election.NewPoint("fill the first cell", false, false, true)
	publish := election.NewPoint("publish the first cell", false, true, false)
	election.WalkSome(t, func(w *election.World) {
		l := keep(w)
		s := w.Segment()
		owner := w.Add(2, func(p *election.Process) {
			for i := range 2 {
				p.Pause(publish)
				c := shm.UnpackCommit(s.Commit.Load())
				seen := c.Pack()
				p.Pause(fill)
				s.Writers[1].Cells[0][0].Store(uint64(i + 1))
				p.Pause(publish)
				c.Slot, c.Cell, c.Seq = 1, 0, c.Seq+1
				if !s.Commit.CompareAndSwap(seen, c.Pack()) {
					return
				}
				l.written++
			}
		})
		w.Owns(owner)
	})
}
