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
