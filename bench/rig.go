package main

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/lease"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// record is the payload: 48 bytes.
type record struct {
	N    uint64
	Rest [5]uint64
}

const (
	low, high = uint32(1000), uint32(2000) // pids of the classic verbs
	grace     = 3
)

// rig is what the operations work on.
type rig struct {
	bare   *election.Election // vacant, no payload
	owned  *election.Election // owned and led by low in its term 1
	vacant *lease.OwnerLease[record]
	held   *lease.OwnerLease[record] // owned and led by low
	other  *lease.OwnerLease[record] // held's file, opened again
	claim  *lease.Claim[record]      // low's, of held
	word   *atomic.Uint64            // of held's mapping, used by nothing else
	spare  [8]*atomic.Uint64         // more of them
	cell   shm.Cell                  // of held's mapping, in a slot that nobody takes
	full   [2]*heartbeat.Watchdog    // of tables with 64 and with 1,024 seats, all taken

	mutex  sync.Mutex
	rw     sync.RWMutex
	value  record
	closed []interface{ Close() error }
}

func (t *tables) open() (err error) {
	r := &rig{}
	t.rig = r
	if r.bare, err = election.Create(t.path("bare")); err != nil {
		return err
	}
	if r.owned, err = election.Create(t.path("owned")); err != nil {
		return err
	}
	r.closed = append(r.closed, r.bare, r.owned)
	if _, err = r.owned.TryClaim(low, grace); err != nil {
		return err
	}
	lead(r.owned.Segment())
	if r.vacant, err = lease.Create(t.path("vacant"), record{}); err != nil {
		return err
	}
	if r.held, err = lease.Create(t.path("held"), record{}); err != nil {
		return err
	}
	if r.other, err = lease.Open[record](t.path("held")); err != nil {
		return err
	}
	r.closed = append(r.closed, r.vacant, r.other, r.held)
	term, err := r.held.TryAcquire(low, grace)
	if err != nil {
		return err
	}
	if err = r.held.WriteAsOwner(low, record{N: 1}); err != nil {
		return err
	}
	seg := r.held.Election().Segment()
	lead(seg)
	if r.claim, err = lease.ClaimOf[record](r.held.View().Payload(), lease.Held{PID: low, Term: term}); err != nil {
		return err
	}
	r.word = seg.Seats[len(seg.Seats)-1].Lag
	for i := range r.spare {
		r.spare[i] = seg.Seats[len(seg.Seats)-2-i].Lag
	}
	r.cell = shm.CellOf(seg.Writers[len(seg.Writers)-1].Cells[1])
	for i, n := range [len(r.full)]int{64, shm.MaxSeats} {
		p := shm.DefaultParams()
		p.Seats, p.Cell = n, 0
		s, err := shm.Create(t.path(fmt.Sprint("seats", i)), p, nil)
		if err != nil {
			return err
		}
		r.closed = append(r.closed, s)
		self, err := proc.Self()
		if err != nil {
			return err
		}
		table := heartbeat.NewTable(s)
		for seat := range n {
			if _, err := table.Join(self, heartbeat.JoinOptions{Index: seat, Supervisor: seat == 0}); err != nil {
				return err
			}
		}
		r.full[i] = heartbeat.NewWatchdog(table)
	}
	return nil
}

// lead lets the owner be active.
func lead(s *shm.Segment) { s.Active.Store(s.Owner.Load()) }

func (r *rig) close() {
	for _, c := range r.closed {
		_ = c.Close()
	}
}
