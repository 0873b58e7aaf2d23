package main

import "github.com/standbyd/standbyd/coord/shm"

// The steps of a claim of a vacant lease and of its release, as docs/protocol.md
// numbers them, written down as loads and compare-and-swaps of the words and
// nothing else: no handle that remembers its term, no counters, no ring, no
// second path. What the protocol itself costs here.

// steps makes claim and release for each run, with the commit word if adopt.
func steps(h *shm.HotWords, adopt bool) func(n int) {
	return func(n int) {
		for range n {
			if owner := claimSteps(h, low, adopt); owner == 0 || !releaseSteps(h, owner) {
				panic("nobody else claims this")
			}
		}
	}
}

//go:noinline
func claimSteps(h *shm.HotWords, pid uint32, adopt bool) (owner uint64) {
	epoch, term := h.Epoch.Load(), h.Owner.Load()
	next := &h.Heartbeat[(term+1)&1]
	if term > shm.MaxTerm || uint32(h.Heartbeat[term&1].Load()>>32) != uint32(term) || h.Control.Load() != 0 {
		return 0
	}
	before := next.Load()
	if uint32(before>>32) != uint32(term-1) || !next.CompareAndSwap(before, shm.PackHeartbeat(uint32(term+1), epoch, false)) {
		return 0
	}
	var commit uint64
	if adopt {
		commit = h.Commit.Load()
	}
	owner = shm.PackOwner(pid, term+1)
	if !h.Owner.CompareAndSwap(term, owner) {
		return 0
	}
	if adopt && !h.Commit.CompareAndSwap(commit, commit&anyTerm|(term+1)<<shm.CommitTermShift) {
		return 0
	}
	return owner
}

// anyTerm is what a commit word says besides its term.
const anyTerm = 1<<shm.CommitTermShift - 1

//go:noinline
func releaseSteps(h *shm.HotWords, owner uint64) bool {
	return h.Owner.CompareAndSwap(owner, owner&shm.MaxTerm) && h.Joins.Load() == 0
}

// readSteps reads as the owner: the value, that it was not written meanwhile, and
// that the owner still is the owner.
//
//go:noinline
func readSteps(h *shm.HotWords, cells *[128]shm.Cell, owner uint64) (v record, ok bool) {
	c := h.Commit.Load()
	v = *shm.InPlace[record](cells[c>>32&127])
	return v, h.Commit.Load() == c && h.Owner.Load() == owner
}

// reads makes a readSteps for each run.
func reads(s *shm.Segment) func(n int) {
	var cells [128]shm.Cell
	for i := range s.Writers {
		for c, cell := range s.Writers[i].Cells {
			cells[2*i+c] = shm.CellOf(cell)
		}
	}
	owner := s.Owner.Load()
	return func(n int) {
		for range n {
			if _, ok := readSteps(s.Hot, &cells, owner); !ok {
				panic("nobody else writes this")
			}
		}
	}
}
