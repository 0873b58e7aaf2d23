package heartbeat

import (
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// Candidate is what decides the order in which standbys take over: higher
// priority first, then the smaller lag, then who joined first.
type Candidate struct {
	Priority   int32
	NoFailover bool   // takes over only if an operator names it
	Lag        uint64 // how far behind its data is, in the worker's own unit; 0 also if it does not say
}

// Member is one row of the table as it was at one moment.
type Member struct {
	Seat        int
	Identity    proc.Identity
	Incarnation uint32
	Index       int    // worker index, -1 none
	JoinSeq     uint64 // rises with every join of the segment
	Ready       bool   // can take over now
	Waiting     bool
	Idle        bool
	Racing      bool // would claim now: neither leads nor is in a back-off
	Last        bool // it failed as leader a moment ago: all others go first
	Watched     bool // reports progress: while it leads, none for the segment's limit is a hang
	Unadmitted  bool // waits for the supervisor's consent, and does not contend before
	Candidate   Candidate
	BeatEpoch   uint64
	Progress    uint64
	InFlight    uint64 // one bit per unit of work
	Robust      uint64 // thread whose end fires its robust words, 0 none
	Ways        uint64 // the Way bits of package shm
}

// Before reports whether m takes over before o.
func (m Member) Before(o Member) bool {
	switch {
	case m.Last != o.Last:
		return o.Last
	case m.Candidate.Priority != o.Candidate.Priority:
		return m.Candidate.Priority > o.Candidate.Priority
	case m.Candidate.Lag != o.Candidate.Lag:
		return m.Candidate.Lag < o.Candidate.Lag
	}
	return m.JoinSeq < o.JoinSeq
}

// read takes a consistent row: the phase word is the same before and after.
func read(w *shm.SeatWords, seat int) (Member, bool) {
	before := w.Phase.Load()
	p := shm.UnpackPhase(before)
	if p.Phase != shm.PhaseJoined {
		return Member{}, false
	}
	status, cand := w.Status.Load(), w.Candidate.Load()
	m := Member{
		Seat: seat, Incarnation: p.Incarnation,
		Identity: proc.Identity{PID: int(w.PID.Load()), Start: w.Start.Load(), Boot: w.Boot.Load(), PIDNS: w.PIDNS.Load()},
		Index:    int(int64(w.Index.Load())) - 1, JoinSeq: w.JoinSeq.Load(),
		Ready: status&shm.StatusReady != 0, Waiting: status&shm.StatusWaiting != 0, Idle: status&shm.StatusIdle != 0,
		Racing: status&shm.StatusRacing != 0, Last: status&shm.StatusLast != 0, Watched: status&shm.StatusWatched != 0,
		Unadmitted: status&shm.StatusUnadmitted != 0,
		Candidate:  Candidate{Priority: int32(cand >> 32), NoFailover: cand&1 != 0, Lag: w.Lag.Load()},
		BeatEpoch:  w.Beat.Load(), Progress: w.Progress.Load(), InFlight: w.InFlight.Load(),
		Robust: w.Robust.Load(), Ways: w.Ways.Load(),
	}
	return m, w.Phase.Load() == before
}
