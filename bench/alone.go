package main

import (
	"fmt"
	"sync/atomic"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// row is one operation of the table of those without contention.
type row struct {
	name string
	what string // one sentence of explanation
	ref  string // the row that its ratio is to
	goal float64
	run  runner
	far  clocked // in place of run, if it runs in another process
	// filled by the measurement
	figure
	allocs uint64
}

const (
	pair      = "sync.Mutex"
	readPair  = "sync.Mutex, read"
	writePair = "sync.Mutex, write"
	flockPair = "flock(2)"
)

// use keeps what is read from being optimized away.
//
//go:noinline
func use(uint64) {}

func (t *tables) rows() []*row {
	r := t.rig
	mono := proc.MonoNow()
	recorded := uint64(1) << 30 // terms that the held lease does not get to
	return []*row{
		{name: pair, ref: pair, what: "Lock and Unlock of a mutex that nobody else wants. What most ratios are to.",
			run: func(n int) {
				for range n {
					r.mutex.Lock()
					r.mutex.Unlock() //lint:ignore SA2001 the pair alone is measured
				}
			}},
		{name: readPair, ref: pair, what: "Lock, a copy of 48 bytes out of the guarded value, Unlock.",
			run: func(n int) {
				var v record
				for range n {
					r.mutex.Lock()
					v = r.value
					r.mutex.Unlock()
				}
				use(v.N ^ v.Rest[4])
			}},
		{name: writePair, ref: pair, what: "Lock, a copy of 48 bytes into the guarded value, Unlock.",
			run: func(n int) {
				v := record{N: 1}
				for range n {
					r.mutex.Lock()
					r.value = v
					r.mutex.Unlock()
				}
			}},
		{name: "sync.RWMutex, read lock", ref: pair, what: "RLock and RUnlock.",
			run: func(n int) {
				for range n {
					r.rw.RLock()
					r.rw.RUnlock() //lint:ignore SA2001 the pair alone is measured
				}
			}},
		{name: "sync.RWMutex, write lock", ref: pair, what: "Lock and Unlock of a read-write mutex.",
			run: func(n int) {
				for range n {
					r.rw.Lock()
					r.rw.Unlock() //lint:ignore SA2001 the pair alone is measured
				}
			}},
		{name: "CAS pair on the mapping", ref: pair, what: "A compare-and-swap from 0 to 1 and one back, on a word of a segment: the least that any lock between processes costs. It says neither who holds it nor survives a crash.",
			run: func(n int) {
				for range n {
					r.word.CompareAndSwap(0, 1)
					r.word.CompareAndSwap(1, 0)
				}
			}},
		{name: "floor: 3 CAS", ref: pair, what: "Three compare-and-swaps on words of the mapping and nothing else: as many as a claim (heartbeat, owner word) and a step down (owner word) make.", run: r.swaps(3)},
		{name: "floor: 4 CAS", ref: pair, what: "As many as acquire and release of a lease make: the commit word is the fourth.", run: r.swaps(4)},
		{name: "floor: 6 CAS", ref: pair, what: "As many as WithLease makes: of those beside acquire and release one keeps goroutines that share the handle apart, one publishes.", run: r.swaps(6)},
		{name: "floor: 3 CAS in two calls", ref: pair, what: "The same three in two functions that are called, as claim and step down are: nothing is looked at but the words that are swapped. The mutex of the reference is not called, the compiler copies it into the loop.", run: r.calls},
		{name: "floor: the steps of a claim", ref: pair, what: "The protocol's steps of a claim and a step down by hand, in two calls: each word that a claim has to look at is loaded, the three are swapped, and nothing is remembered, counted or recorded.", run: steps(r.bare.Segment().Hot, false)},
		{name: "floor: the steps of an acquire", ref: pair, what: "The same with the commit word, which the new owner adopts.", run: steps(r.vacant.Election().Segment().Hot, true)},
		{name: "floor: the steps of a read as owner", ref: readPair, what: "The protocol's steps of a read by the owner by hand, in one call: the commit word, 48 bytes, the commit word, the owner word.", run: reads(r.held.Election().Segment())},
		{name: "floor: 2 CAS and a copy", ref: writePair, what: "A compare-and-swap, 48 bytes copied into the mapping, another one: the least for a write by a handle that goroutines may share, one to keep them apart and one to publish.", run: r.copies},
		{name: "floor: ring entry", ref: pair, what: "The plain store by which a claim of a vacant lease is recorded in the ring of events.",
			run: func(n int) {
				s := r.other.Election().Segment()
				for range n {
					recorded++
					s.RecordPlainClaim(shm.PackOwner(low, recorded))
				}
			}},
		{name: "election, claim and step down", ref: pair, goal: 1.6, what: "TryClaim of a vacant lease and StepDown, without payload: a new term each time.",
			run: func(n int) {
				for range n {
					r.bare.TryClaim(low, grace)
					r.bare.StepDown(low)
				}
			}},
		{name: "election, strict claim and release", ref: pair, what: "The same by Claim and Release, which name their term; without the times in the ring.",
			run: func(n int) {
				for range n {
					g, _ := r.bare.Claim(election.Attempt{PID: low, Seat: -1, Grace: grace})
					_ = r.bare.Release(low, g.Term)
				}
			}},
		{name: "lease, acquire and release", ref: pair, goal: 2.1, what: "TryAcquire and Release of a lease with payload, which the new owner adopts.",
			run: func(n int) {
				for range n {
					r.vacant.TryAcquire(low, grace)
					r.vacant.Release(low)
				}
			}},
		{name: "lease, acquire and release, to flock", ref: flockPair, goal: 1.0 / 15, what: "The same operation, beside flock(2): the goal is 15 times as fast.",
			run: func(n int) {
				for range n {
					r.vacant.TryAcquire(low, grace)
					r.vacant.Release(low)
				}
			}},
		{name: "WithLease", ref: pair, goal: 2.7, what: "Acquire, read 48 bytes, change them, publish them as a whole, release.",
			run: func(n int) {
				for range n {
					r.vacant.WithLease(low, grace, bump)
				}
			}},
		{name: "read as owner", ref: readPair, goal: 0.25, what: "ReadAsOwner: the committed 48 bytes, and that the reader still owns.",
			run: func(n int) {
				for range n {
					r.held.ReadAsOwner(low)
				}
			}},
		{name: "write as owner", ref: writePair, goal: 0.8, what: "WriteAsOwner of 48 bytes: into a cell that nobody reads, then committed by a CAS.",
			run: func(n int) {
				v := record{N: 1}
				for range n {
					r.held.WriteAsOwner(low, v)
				}
			}},
		{name: "snapshot by a non-owner", ref: readPair, goal: 0.25, what: "Snapshot through another mapping of the file: the committed 48 bytes, never torn, and their term.",
			run: func(n int) {
				for range n {
					r.other.Snapshot()
				}
			}},
		{name: "ownership check", ref: readPair, goal: 0.25, what: "Claim.Check: the lease is ours and we may act.",
			run: func(n int) {
				for range n {
					if r.claim.Check() != nil {
						panic("fenced")
					}
				}
			}},
		{name: "IsOwner", ref: readPair, goal: 0.25, what: "The classic check, by pid.",
			run: func(n int) {
				for range n {
					if !r.held.IsOwner(low) {
						panic("not the owner")
					}
				}
			}},
		{name: "election, idempotent claim", ref: readPair, goal: 0.25, what: "TryClaim by the owner: it stays the owner in its term.",
			run: func(n int) {
				for range n {
					r.owned.TryClaim(low, grace)
				}
			}},
		{name: "lease, idempotent claim", ref: readPair, goal: 0.25, what: "TryAcquire by the owner.",
			run: func(n int) {
				for range n {
					r.held.TryAcquire(low, grace)
				}
			}},
		{name: "refused claim", ref: pair, what: "TryClaim by a higher pid: the owner is healthy.",
			run: func(n int) {
				for range n {
					r.owned.TryClaim(high, grace)
				}
			}},
		{name: "election, beat in an epoch already beaten", ref: pair, goal: 0.15, what: "BeatAsLeader: loads only, no write to shared memory.",
			run: func(n int) {
				for range n {
					r.owned.BeatAsLeader(low)
				}
			}},
		{name: "claim, beat in an epoch already beaten", ref: pair, goal: 0.15, what: "Claim.Beat: the same in a term that is named.",
			run: func(n int) {
				for range n {
					r.claim.Beat()
				}
			}},
		{name: "beat in a new epoch", ref: pair, what: "TickEpoch and Beat: an atomic add and a CAS.",
			run: func(n int) {
				for range n {
					r.owned.TickEpoch()
					r.owned.BeatAsLeader(low)
				}
				r.held.Beat(low)
			}},
		{name: "tick", ref: pair, what: "TickEpoch: one atomic add.",
			run: func(n int) {
				for range n {
					r.bare.TickEpoch()
				}
			}},
		{name: "tick that is not due", ref: pair, what: "Tick, as every member calls it: somebody else has ticked.",
			run: func(n int) {
				r.owned.Segment().TickedAt.Store(uint64(mono))
				for range n {
					r.owned.Tick(mono)
				}
			}},
		{name: "scan of 64 slots", ref: pair, goal: 10, what: "Watchdog.Scan of a table in which all seats are taken and nobody is late.",
			run: func(n int) {
				for range n {
					r.full[0].Scan(grace)
				}
			}},
		{name: "scan of 1024 slots", ref: pair, what: "The same of the largest table that a segment can have.",
			run: func(n int) {
				for range n {
					r.full[1].Scan(grace)
				}
			}},
	}
}

func bump(r *record) { r.N++ }

// swaps makes k compare-and-swaps for each run, on words in different lines,
// without a loop around them.
func (r *rig) swaps(k int) runner {
	w := &r.spare
	return func(n int) {
		for _, word := range w {
			word.Store(0)
		}
		switch end := uint64(n); k {
		case 3:
			for i := range end {
				w[0].CompareAndSwap(i, i+1)
				w[1].CompareAndSwap(i, i+1)
				w[2].CompareAndSwap(i, i+1)
			}
		case 4:
			for i := range end {
				w[0].CompareAndSwap(i, i+1)
				w[1].CompareAndSwap(i, i+1)
				w[2].CompareAndSwap(i, i+1)
				w[3].CompareAndSwap(i, i+1)
			}
		case 6:
			for i := range end {
				w[0].CompareAndSwap(i, i+1)
				w[1].CompareAndSwap(i, i+1)
				w[2].CompareAndSwap(i, i+1)
				w[3].CompareAndSwap(i, i+1)
				w[4].CompareAndSwap(i, i+1)
				w[5].CompareAndSwap(i, i+1)
			}
		}
	}
}

// calls makes three compare-and-swaps for each run, in two calls.
func (r *rig) calls(n int) {
	beat, owner := r.spare[0], r.spare[1]
	beat.Store(0)
	owner.Store(0)
	for i := range uint64(n) {
		if !take(beat, owner, i) || !give(owner, i) {
			panic("nobody else swaps these")
		}
	}
}

//go:noinline
func take(beat, owner *atomic.Uint64, i uint64) bool {
	return beat.CompareAndSwap(i, i+1) && owner.CompareAndSwap(2*i, 2*i+1)
}

//go:noinline
func give(owner *atomic.Uint64, i uint64) bool { return owner.CompareAndSwap(2*i+1, 2*i+2) }

// copies stores 48 bytes between two compare-and-swaps for each run.
func (r *rig) copies(n int) {
	lock, commit := r.spare[0], r.spare[1]
	lock.Store(0)
	commit.Store(0)
	v := record{N: 1}
	for i := range uint64(n) {
		if !lock.CompareAndSwap(i, i+1) {
			panic("nobody else swaps this")
		}
		shm.StoreValue(r.cell, &v)
		commit.CompareAndSwap(i, i+1)
	}
}

// alone measures every operation without contention.
func (t *tables) alone() ([]*row, error) {
	rows := t.rows()
	peers, done := t.peers()
	defer done()
	rows = append(rows, peers...)
	refs := map[string]clocked{}
	for _, w := range rows {
		if w.far == nil {
			w.far = w.run.clocked()
		}
		refs[w.name] = w.far
	}
	var measured []*row
	for _, w := range rows {
		if !t.wanted(w.name) {
			continue
		}
		if refs[w.ref] == nil {
			t.skip(w.name, fmt.Errorf("there is no %s to compare it with", w.ref))
			continue
		}
		var err error
		if w.figure, err = compare(w.far, refs[w.ref], t.rounds); err != nil {
			t.skip(w.name, err)
			continue
		}
		if w.run != nil {
			w.allocs = allocations(w.run)
		}
		measured = append(measured, w)
	}
	return measured, nil
}

// loop only runs the operations, for a profiler.
func (t *tables) loop(n int) error {
	for _, w := range t.rows() {
		if t.wanted(w.name) {
			w.run(n)
		}
	}
	return nil
}
