package election

import (
	"github.com/standbyd/standbyd/coord/shm"
)

// ControlState is what the supervisor lets claimants do. The numbers are in
// files and append-only.
type ControlState uint8

const (
	ControlOpen   ControlState = 0
	ControlPaused ControlState = 1 // no claim until resumed, but by a nominee
	ControlHeld   ControlState = 2 // nobody may lead until acknowledged, but a nominee
	ControlClosed ControlState = 3 // the role stops: drain, release, claim no more
)

func (c ControlState) String() string {
	switch c {
	case ControlPaused:
		return "paused"
	case ControlHeld:
		return "held"
	case ControlClosed:
		return "closed"
	}
	return "open"
}

// Control is the supervisor's policy as it stands in the segment: claimants
// obey it without asking anybody.
type Control struct {
	State   ControlState
	Gate    bool // a claimant leads only in the granted term
	ByHand  bool // paused is an operator's word, which outlives a supervisor
	Planned bool // the nominee follows the term that is asked to resign, as an operator wants
	Nominee int  // seat of the only member that may claim, -1 none
	// ResignTerm asks the owner of that term to drain and release; 0 none.
	ResignTerm uint64
	// GrantedTerm is the latest term that may pass the gate.
	GrantedTerm uint64
	// Until ends paused, held and the nomination, in CLOCK_MONOTONIC
	// nanoseconds; 0 never. A supervisor that died binds nobody for longer.
	Until int64
}

// Bits of the control word above its state.
const (
	gateBit    = 1 << 8
	byHandBit  = 1 << 9
	plannedBit = 1 << 10
)

// Control reads the policy, with what has passed its Until left out.
func (e *Election) Control() Control {
	c := e.control()
	if c.Until != 0 && (c.State != ControlOpen || c.Nominee >= 0) && shm.MonoNow() >= c.Until {
		if c.State != ControlClosed {
			c.State = ControlOpen
		}
		c.Nominee = -1
	}
	return c
}

func (e *Election) control() Control {
	w := e.seg.Control.Word.Load()
	return Control{
		State: ControlState(w), Nominee: int(w>>16&0xffff) - 1,
		Gate: w&gateBit != 0, ByHand: w&byHandBit != 0, Planned: w&plannedBit != 0,
		ResignTerm: e.seg.Control.Resign.Load(), GrantedTerm: e.seg.Control.Granted.Load(), Until: int64(e.seg.Control.Until.Load()),
	}
}

// SetControl writes the policy and wakes whom it concerns. Only the supervisor
// calls it, from one goroutine.
func (e *Election) SetControl(c Control) {
	before := e.control()
	w := uint64(c.State) | uint64(c.Nominee+1)&0xffff<<16
	w |= flag(gateBit, c.Gate) | flag(byHandBit, c.ByHand) | flag(plannedBit, c.Planned)
	e.seg.Control.Resign.Store(c.ResignTerm)
	e.seg.Control.Granted.Store(c.GrantedTerm)
	e.seg.Control.Until.Store(uint64(c.Until))
	e.seg.Control.Word.Store(w)
	e.announce(before, c)
}

// announce wakes whom the change of the policy concerns, after it was written:
// everybody, but at the two moments of a planned change of leader at which a
// leader leads and nobody else could claim. Whoever wakes for nothing then takes
// the processors from the two that hand over. Those that sleep on obey the words
// all the same: a claim reads them, whatever it was woken by.
func (e *Election) announce(before, c Control) {
	owner := e.seg.Owner.Load()
	pid, term := shm.UnpackOwner(owner)
	seat := e.seg.SeatOf(pid)
	if pid == 0 || seat < 0 || c.State != before.State || e.seg.Active.Load() != owner || e.Stale() {
		e.seg.WakeAll()
		return
	}
	switch {
	case c.Planned && c.ResignTerm == term && c.Nominee >= 0 && c.Nominee < len(e.seg.Seats):
		if e.seg.Seats[c.Nominee].Status.Load()&shm.StatusRacing != 0 {
			e.seg.WakeSeatUrgent(c.Nominee) // it waits for the lease, with one thread
		} else {
			e.seg.WakeSeat(c.Nominee)
		}
		e.seg.WakeSeat(seat)
	case c.Nominee < 0 && c.ResignTerm < term:
		// Who was to follow leads, and is asked for nothing.
	default:
		e.seg.WakeAll()
	}
}

func flag(bit uint64, on bool) uint64 {
	if on {
		return bit
	}
	return 0
}

// forbids says why the control word keeps the claimant from claiming, 0 if it
// does not. An open word without nominee costs one load.
func (e *Election) forbids(a *Attempt) Why {
	w := e.seg.Control.Word.Load()
	if w&^gateBit == 0 {
		return 0
	}
	c := e.Control()
	switch {
	case c.State == ControlClosed:
		return WhyClosed
	case c.Nominee >= 0 && c.Nominee == a.Seat:
		return 0 // whom the supervisor names may take over from a paused or held role
	case c.State == ControlHeld:
		return WhyControl
	case c.State == ControlPaused:
		return WhyPaused
	case c.Nominee < 0 || c.Nominee >= len(e.seg.Seats):
		return 0
	}
	// A nominee that is dead, hung or not ready binds nobody.
	n := &e.seg.Seats[c.Nominee]
	phase := shm.UnpackPhase(n.Phase.Load())
	if phase.Phase != shm.PhaseJoined || n.Status.Load()&shm.StatusReady == 0 || a.Dead != nil && a.Dead(phase.PID) ||
		int64(e.seg.Epoch.Load()-n.Beat.Load()) > int64(min(e.seg.Grace(), 1<<30)) {
		return 0
	}
	return WhyNominee
}

// forbidsLeading is the second look at the control word, before the active
// word is published.
func (e *Election) forbidsLeading(pid uint32) bool {
	c := e.Control()
	return c.State == ControlClosed ||
		c.State == ControlHeld && (c.Nominee < 0 || c.Nominee != e.seg.SeatOf(pid))
}
