package election

import (
	"errors"
	"testing"

	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/proc"
)

// TestNomineeMayClaimFromAPausedOrHeldRole, and from no closed one.
func TestNomineeMayClaimFromAPausedOrHeldRole(t *testing.T) {
	for _, c := range []struct {
		state ControlState
		why   Why // 0: it may
	}{{ControlOpen, 0}, {ControlPaused, 0}, {ControlHeld, 0}, {ControlClosed, WhyClosed}} {
		e := newElection(t)
		e.SetControl(Control{State: c.state, Nominee: 2})
		_, err := e.Claim(Attempt{PID: 100, Seat: 2, Grace: 3})
		var r *Refused
		if c.why == 0 && err != nil || c.why != 0 && (!errors.As(err, &r) || r.Why != c.why) {
			t.Errorf("%v: %v", c.state, err)
		}
	}
}

func TestControlWordKeepsItsBits(t *testing.T) {
	e := newElection(t)
	for _, want := range []Control{
		{State: ControlPaused, Nominee: -1, ByHand: true},
		{State: ControlOpen, Nominee: 3, Planned: true, ResignTerm: 9},
		{State: ControlHeld, Nominee: 0, ByHand: true, Planned: true, Gate: true, GrantedTerm: 8},
	} {
		e.SetControl(want)
		if got := e.Control(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestNomineeThatDoesNotBeatBindsNobody: a stopped process says ready for ever.
func TestNomineeThatDoesNotBeatBindsNobody(t *testing.T) {
	e := newElection(t)
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	seat, err := heartbeat.NewTable(e.Segment()).Join(self, heartbeat.JoinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other := Attempt{PID: 100, Seat: -1, Grace: 3}
	refused := func(want bool, when string) {
		t.Helper()
		e.SetControl(Control{Nominee: seat.Number()})
		_, why, err := e.claim(&other)
		if err != nil || (why == WhyNominee) != want {
			t.Fatalf("%s: %v, %v", when, why, err)
		}
		if why == 0 {
			_, term := e.Owner()
			e.Release(other.PID, term)
		}
	}
	refused(false, "not ready")
	seat.SetReady(true)
	refused(true, "ready")
	for range e.Segment().Grace() {
		e.TickEpoch()
	}
	refused(true, "as late as grace permits")
	e.TickEpoch()
	refused(false, "later")
	seat.Beat(e.Epoch())
	refused(true, "it beats again")
}

// TestPlannedClaimSaysSo: the reason is switchover only for the nominee that
// follows the term that was asked to resign.
func TestPlannedClaimSaysSo(t *testing.T) {
	for _, c := range []struct {
		control Control
		seat    int
		want    role.Reason
	}{
		{Control{Nominee: 2, ResignTerm: 1, Planned: true}, 2, role.ReasonSwitchover},
		{Control{Nominee: 2, ResignTerm: 1}, 2, role.ReasonStepDown},
		{Control{Nominee: 2, ResignTerm: 7, Planned: true}, 2, role.ReasonStepDown},
		{Control{Nominee: 2, ResignTerm: 1, Planned: true}, -1, role.ReasonStepDown}, // nobody has seat 2
	} {
		e := newElection(t)
		claim(t, e, 100, 1)
		if err := e.Release(100, 1); err != nil {
			t.Fatal(err)
		}
		e.SetControl(c.control)
		g, err := e.Claim(Attempt{PID: 200, Seat: c.seat, Grace: 3, Stamp: true})
		if err != nil || g.Reason != c.want {
			t.Errorf("%+v: %+v, %v", c.control, g, err)
		}
	}
}

// TestHandOverWakesWhoFollows: the nominee of a planned change alone, else
// everybody; and it gives back only what is the caller's own.
func TestHandOverWakesWhoFollows(t *testing.T) {
	for _, c := range []struct {
		name       string
		control    Control
		term       uint64 // that is handed over; 1 is the owner's
		woken      [3]bool
		owner, act uint32
	}{
		{"planned", Control{Nominee: 2, ResignTerm: 1, Planned: true}, 1, [3]bool{false, false, true}, 0, 0},
		{"planned for another term", Control{Nominee: 2, ResignTerm: 3, Planned: true}, 1, [3]bool{true, true, true}, 0, 0},
		{"nobody is named", Control{Nominee: -1, ResignTerm: 1}, 1, [3]bool{true, true, true}, 0, 0},
		{"another term's", Control{Nominee: -1}, 9, [3]bool{}, 100, 100},
	} {
		e := newElection(t)
		s := e.Segment()
		self, err := proc.Self()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := heartbeat.NewTable(s).Join(self, heartbeat.JoinOptions{Supervisor: i == 0}); err != nil {
				t.Fatal(err)
			}
		}
		claim(t, e, 100, 1)
		if err := e.Promote(t.Context(), Promotion{PID: 100, Term: 1}); err != nil {
			t.Fatal(err)
		}
		e.SetControl(c.control)
		var before [3]uint32
		for i := range before {
			before[i] = s.Seats[i].Event.Load()
		}
		if planned := e.HandOver(100, c.term); planned != (c.name == "planned") {
			t.Errorf("%s: planned %v", c.name, planned)
		}
		for i := range before {
			if got := s.Seats[i].Event.Load() != before[i]; got != c.woken[i] {
				t.Errorf("%s: seat %d woken: %v", c.name, i, got)
			}
		}
		owner, _ := e.Owner()
		active, _ := e.Active()
		if owner != c.owner || active != c.act {
			t.Errorf("%s: owner %d, active %d", c.name, owner, active)
		}
	}
}
