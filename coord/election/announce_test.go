package election

import (
	"testing"

	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// cast is three members that have joined: pid 100 leads in term 1, 101 is to
// follow, 102 has nothing to do with it.
type cast struct {
	*Election
	leader, heir, other int // seats
}

func newCast(t *testing.T) cast {
	t.Helper()
	c := cast{Election: newElection(t)}
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []*int{&c.leader, &c.heir, &c.other} {
		id := self
		id.PID, id.PIDNS = 100+i, self.PIDNS+1 // not to be seen from here: alive
		seat, err := heartbeat.NewTable(c.Segment()).Join(id, heartbeat.JoinOptions{Index: i})
		if err != nil {
			t.Fatal(err)
		}
		seat.SetReady(true)
		seat.SetRacing(i > 0)
		*at = seat.Number()
	}
	if _, err := c.Claim(Attempt{PID: 100, Seat: c.leader, Grace: 3}); err != nil {
		t.Fatal(err)
	}
	c.lead(t, 100, 1)
	c.SetControl(Control{Nominee: -1})
	return c
}

func (c cast) lead(t *testing.T, pid uint32, term uint64) {
	t.Helper()
	if err := c.Promote(t.Context(), Promotion{PID: pid, Term: term}); err != nil {
		t.Fatal(err)
	}
}

// told is which of the cast hear of a change of the policy.
func (c cast) told(change Control) [3]bool {
	seats := [3]int{c.leader, c.heir, c.other}
	var before [3]uint32
	for i, seat := range seats {
		before[i] = c.Segment().Seats[seat].Event.Load()
	}
	c.SetControl(change)
	var told [3]bool
	for i, seat := range seats {
		told[i] = c.Segment().Seats[seat].Event.Load() != before[i]
	}
	return told
}

// TestHandOverIsTheirsAlone: of a planned change hear the leader and who is to
// follow, and of its end nobody.
func TestHandOverIsTheirsAlone(t *testing.T) {
	c := newCast(t)
	if got, want := c.told(Control{Nominee: c.heir, Planned: true, ResignTerm: 1}), [3]bool{true, true, false}; got != want {
		t.Errorf("leader, heir, other are told %v at the beginning, want %v", got, want)
	}
	if !c.HandOver(100, 1) {
		t.Error("not handed over as planned")
	}
	if _, err := c.Claim(Attempt{PID: 101, Seat: c.heir, Grace: 3}); err != nil {
		t.Fatal(err)
	}
	c.lead(t, 101, 2)
	if got, want := c.told(Control{Nominee: -1, ResignTerm: 1}), [3]bool{}; got != want {
		t.Errorf("leader, heir, other are told %v at the end, want %v", got, want)
	}
}

// TestPolicyThatMayLetAnyoneClaimIsEverybodys, and so is whatever else is no
// planned change between two that live.
func TestPolicyThatMayLetAnyoneClaimIsEverybodys(t *testing.T) {
	all := [3]bool{true, true, true}
	begin := func(c cast) Control { return Control{Nominee: c.heir, Planned: true, ResignTerm: 1} }
	for name, change := range map[string]func(t *testing.T, c cast) Control{
		"paused": func(_ *testing.T, c cast) Control { return Control{State: ControlPaused, Nominee: -1} },
		"closed": func(_ *testing.T, c cast) Control { return Control{State: ControlClosed, Nominee: -1} },
		"resumed": func(_ *testing.T, c cast) Control {
			c.SetControl(Control{State: ControlPaused, Nominee: -1})
			return Control{Nominee: -1}
		},
		"to resign for anybody": func(_ *testing.T, c cast) Control { return Control{Nominee: -1, ResignTerm: 1} },
		"forced":                func(_ *testing.T, c cast) Control { return Control{Nominee: c.heir, ResignTerm: 1} },
		"given up": func(_ *testing.T, c cast) Control {
			c.SetControl(begin(c))
			return Control{Nominee: -1, ResignTerm: 1}
		},
		"nobody owns": func(t *testing.T, c cast) Control {
			c.HandOver(100, 1)
			return begin(c)
		},
		"the owner does not lead yet": func(t *testing.T, c cast) Control {
			c.HandOver(100, 1)
			if _, err := c.Claim(Attempt{PID: 101, Seat: c.heir, Grace: 3}); err != nil {
				t.Fatal(err)
			}
			return Control{Nominee: -1, Gate: true, GrantedTerm: 2, ResignTerm: 1}
		},
		"the leader hangs": func(_ *testing.T, c cast) Control {
			for range 5 {
				c.TickEpoch()
			}
			return begin(c)
		},
		"a seat that is not there": func(_ *testing.T, c cast) Control {
			return Control{Nominee: shm.DefaultParams().Seats + 7, Planned: true, ResignTerm: 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCast(t)
			if got := c.told(change(t, c)); got != all {
				t.Errorf("leader, heir, other are told %v", got)
			}
		})
	}
}
