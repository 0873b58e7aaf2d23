package heartbeat

import (
	"fmt"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// SupervisorSeat is the seat that only a supervisor takes.
const SupervisorSeat = 0

// Table is the member table of one segment. Safe for concurrent use; it lives
// as long as the segment is open.
type Table struct{ seg *shm.Segment }

// NewTable is a view of the segment's table; it costs nothing.
func NewTable(seg *shm.Segment) *Table { return &Table{seg: seg} }

// JoinOptions say what a joining member is. The zero value joins as worker 0.
type JoinOptions struct {
	Index      int  // worker index, -1 none
	Supervisor bool // takes SupervisorSeat
	Unadmitted bool // does not contend before the supervisor has called Admit
	Candidate  Candidate
}

// Join takes a seat for this process: a free one, or one whose holder is
// proven gone. Before that it frees what an earlier process with the same pid
// and another start time left in the owner word, the active word and the
// table: that our process has the pid proves that theirs is dead.
func (t *Table) Join(self proc.Identity, o JoinOptions) (*Seat, error) {
	if self.PID <= 0 || self.PID > shm.MaxPID {
		return nil, fmt.Errorf("join with pid %d: %w", self.PID, ErrInvalidPID)
	}
	t.buryNamesakes(self)
	if o.Supervisor {
		if s := t.take(SupervisorSeat, self, o); s != nil {
			return s, nil
		}
		m, _ := t.Supervisor()
		return nil, fmt.Errorf("join as supervisor: %v holds the seat: %w", m.Identity, ErrSupervised)
	}
	for i := SupervisorSeat + 1; i < len(t.seg.Seats); i++ {
		if s := t.take(i, self, o); s != nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("join %s: all %d seats are taken: %w", t.seg.Path(), len(t.seg.Seats)-1, ErrFull)
}

// buryNamesakes ends what earlier processes with our pid still hold.
func (t *Table) buryNamesakes(self proc.Identity) {
	pid := uint32(self.PID)
	for i := range t.seg.Seats {
		w := &t.seg.Seats[i]
		m, ok := read(w, i)
		if !ok || m.Identity.PID != self.PID || m.Identity.PIDNS != self.PIDNS ||
			m.Identity.Boot == self.Boot && (m.Identity.Start == self.Start || m.Identity.Start == 0) {
			continue
		}
		if p, term := shm.UnpackOwner(t.seg.Owner.Load()); p == pid {
			t.seg.Owner.CompareAndSwap(shm.PackOwner(p, term), shm.PackOwner(0, term))
		}
		if p, term := shm.UnpackOwner(t.seg.Active.Load()); p == pid {
			t.seg.KeepInFlight(p, term)
			t.seg.Active.CompareAndSwap(shm.PackOwner(p, term), shm.PackOwner(0, term))
		}
		joined := shm.Phase{Phase: shm.PhaseJoined, Incarnation: m.Incarnation, PID: pid}
		w.Phase.CompareAndSwap(joined.Pack(), shm.Phase{Incarnation: m.Incarnation}.Pack())
	}
}

// take takes seat i if it may; nil if not.
func (t *Table) take(i int, self proc.Identity, o JoinOptions) *Seat {
	w := &t.seg.Seats[i]
	old := w.Phase.Load()
	if !t.free(w, old, i, self) {
		return nil
	}
	p := shm.UnpackPhase(old)
	mine := shm.Phase{Phase: shm.PhaseJoining, Incarnation: (p.Incarnation + 1) & (1<<24 - 1), PID: uint32(self.PID)}
	if !w.Phase.CompareAndSwap(old, mine.Pack()) {
		return nil
	}
	w.PID.Store(uint64(self.PID))
	w.Start.Store(self.Start)
	w.Boot.Store(self.Boot)
	w.PIDNS.Store(self.PIDNS)
	w.Index.Store(uint64(int64(o.Index + 1)))
	w.JoinSeq.Store(t.seg.Joins.Add(1))
	w.Beat.Store(t.seg.Epoch.Load())
	w.Progress.Store(0)
	w.Status.Store(0)
	if o.Unadmitted {
		w.Status.Store(shm.StatusUnadmitted)
	}
	w.InFlight.Store(0)
	w.Robust.Store(0)
	w.Ways.Store(0)
	s := &Seat{table: t, w: w, number: i, identity: self}
	s.SetCandidate(o.Candidate)
	mine.Phase = shm.PhaseJoined
	s.phase = mine.Pack()
	w.Phase.Store(s.phase)
	return s
}

// free reports whether self may take a seat with this phase word.
func (t *Table) free(w *shm.SeatWords, phase uint64, i int, self proc.Identity) bool {
	p := shm.UnpackPhase(phase)
	switch p.Phase {
	case shm.PhaseFree:
		return true
	case shm.PhaseJoining:
		// Who joins is not written yet: a joiner that cannot be seen from here
		// (another pid namespace) may be at it, slowly. One that died within
		// these few stores costs the seat.
		return false
	case shm.PhaseJoined:
		m, ok := read(w, i)
		if !ok || m.Identity == self || proc.Judge(m.Identity) != proc.Gone {
			return false
		}
		owner, _ := shm.UnpackOwner(t.seg.Owner.Load())
		active, _ := shm.UnpackOwner(t.seg.Active.Load())
		return owner != p.PID && active != p.PID
	}
	return false
}

// Members are the joined seats in the order of their numbers, the supervisor's
// among them.
func (t *Table) Members() []Member { return t.AppendMembers(nil) }

// AppendMembers is Members into a slice that is there already, for who looks
// often: it appends to ms and returns it.
func (t *Table) AppendMembers(ms []Member) []Member {
	for i := range t.seg.Seats {
		if m, ok := read(&t.seg.Seats[i], i); ok {
			ms = append(ms, m)
		}
	}
	return ms
}

// Member is the row of one seat; ok is false if nobody has joined there.
func (t *Table) Member(seat int) (m Member, ok bool) {
	if seat < 0 || seat >= len(t.seg.Seats) {
		return Member{}, false
	}
	return read(&t.seg.Seats[seat], seat)
}

// Of is the row of the member with pid.
func (t *Table) Of(pid uint32) (m Member, ok bool) { return t.Member(t.seg.SeatOf(pid)) }

// Supervisor is the row of the supervisor's seat.
func (t *Table) Supervisor() (m Member, ok bool) { return t.Member(SupervisorSeat) }

// SetLast says whether the member with pid in that seat goes after all others.
// Only the supervisor calls it; whoever sits there by then otherwise is left
// alone.
func (t *Table) SetLast(seat int, pid uint32, on bool) {
	if seat < 0 || seat >= len(t.seg.Seats) {
		return
	}
	w := &t.seg.Seats[seat]
	switch p := shm.UnpackPhase(w.Phase.Load()); {
	case p.Phase != shm.PhaseJoined || p.PID != pid:
	case on:
		w.Status.Or(shm.StatusLast)
	default:
		w.Status.And(^shm.StatusLast)
	}
}

// Admit lets the member with pid in that seat contend, and wakes it. Only the
// supervisor calls it; whoever sits there by then otherwise is left alone.
func (t *Table) Admit(seat int, pid uint32) {
	if seat < 0 || seat >= len(t.seg.Seats) {
		return
	}
	w := &t.seg.Seats[seat]
	if p := shm.UnpackPhase(w.Phase.Load()); p.Phase == shm.PhaseJoined && p.PID == pid {
		w.Status.And(^shm.StatusUnadmitted)
		t.Wake(seat)
	}
}

// Wake raises the event word of one seat and wakes its holder.
func (t *Table) Wake(seat int) { t.seg.WakeSeat(seat) }

// WakeAll wakes every member.
func (t *Table) WakeAll() { t.seg.WakeAll() }
