package shm

import (
	"fmt"
	"time"
)

// Fence codes: what is done to a predecessor before the next leader leads.
// The numbers are in files and append-only.
const (
	FenceToken   uint8 = 0 // nothing
	FenceProcess uint8 = 1 // its process is made to end, and proven dead
	FenceTree    uint8 = 2 // and its process tree
)

// Proof codes: how sure a claimant must be of a death.
const (
	ProofGone    uint8 = 0
	ProofExiting uint8 = 1
)

// Preempt codes: who may take the lease from a healthy owner.
const (
	PreemptSticky    uint8 = 0
	PreemptLowestPID uint8 = 1
	PreemptPriority  uint8 = 2
)

// Scheduling codes: how the threads of a member that wait and beat are to run.
const (
	SchedulingNormal uint8 = 0
	SchedulingNice   uint8 = 1 // at nice -20
	SchedulingFIFO   uint8 = 2 // under SCHED_FIFO
)

// Params are the constants of a segment: its creator writes them, every member
// reads them, nobody changes them.
type Params struct {
	Generation uint64 // at most role.MaxGeneration
	Grace      uint64 // epochs an owner may be behind; at least 1
	Tick       time.Duration

	ProgressLimit time.Duration // 0: none
	DrainLimit    time.Duration
	FenceLimit    time.Duration

	Fence   uint8
	Proof   uint8
	Preempt uint8
	// Scheduling is a wish: a member that is not permitted runs as it can.
	Scheduling uint8

	Seats   int // 0 means 64
	Writers int // 0 means 64
	// Cell is the size of a payload cell in bytes, rounded up to a multiple
	// of 8. 0 is a segment without payload.
	Cell int
	// PayloadType is the size of the T that the creator recorded, -1 for none:
	// then any T that fits a cell may be opened.
	PayloadType int

	// UID and GID own the file if they are not negative; -1 leaves it to the
	// creator. Giving a file away needs root.
	UID, GID int
}

// DefaultParams are those of a segment without a supervisor.
func DefaultParams() Params {
	return Params{
		Grace: 3, Tick: 100 * time.Millisecond,
		DrainLimit: 5 * time.Second, FenceLimit: 10 * time.Second,
		Fence: FenceToken, Seats: 64, Writers: 64, Cell: DefaultCell, PayloadType: -1,
		UID: -1, GID: -1,
	}
}

func (p *Params) normalize() error {
	if p.Seats == 0 {
		p.Seats = 64
	}
	if p.Writers == 0 {
		p.Writers = 64
	}
	p.Cell = (p.Cell + 7) &^ 7
	switch {
	case p.Grace < 1:
		return fmt.Errorf("grace %d: at least 1 epoch: %w", p.Grace, ErrParams)
	case p.Tick <= 0:
		return fmt.Errorf("tick %v: must be positive: %w", p.Tick, ErrParams)
	case p.Generation >= 1<<22:
		return fmt.Errorf("generation %d: at most %d: %w", p.Generation, 1<<22-1, ErrParams)
	case p.Fence > FenceTree || p.Proof > ProofExiting || p.Preempt > PreemptPriority || p.Scheduling > SchedulingFIFO:
		return fmt.Errorf("rules %d %d %d %d: %w", p.Fence, p.Proof, p.Preempt, p.Scheduling, ErrParams)
	case p.PayloadType > p.Cell:
		return fmt.Errorf("payload of %d bytes in cells of %d: %w", p.PayloadType, p.Cell, ErrParams)
	case !p.geometry().valid():
		return fmt.Errorf("%d seats (1 to %d), %d writers (1 to %d), cells of %d bytes (0 to %d): %w",
			p.Seats, MaxSeats, p.Writers, MaxWriters, p.Cell, MaxCell, ErrParams)
	}
	return nil
}

func (p *Params) geometry() geometry {
	return geometry{seats: p.Seats, writers: p.Writers, ring: ringEntries, cell: p.Cell}
}
