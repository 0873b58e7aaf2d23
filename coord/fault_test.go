package coord

import (
	"errors"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/election"
)

// What is stuck in the calls of a hung leadership is free again when it is
// over, and the member is as good as before.
func TestHangEndsWithItsLeadership(t *testing.T) {
	m := join(t)
	l := campaign(t, m)
	m.elec.OrderFault(l.term, election.FaultHang)
	await := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s has not returned", what)
		}
	}
	hung := make(chan struct{})
	go func() {
		for m.bars.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		close(hung)
	}()
	await("the order to hang", hung)
	checked, pulsed, idle := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var err error
	go func() { err = l.Check(); close(checked) }()
	go func() { m.Pulse(); close(pulsed) }()
	go func() { m.Idle(); close(idle) }()
	select {
	case <-checked:
		t.Error("Check returned")
	case <-pulsed:
		t.Error("Pulse returned")
	case <-idle:
		t.Error("Idle returned")
	case <-time.After(50 * time.Millisecond):
	}
	if err := l.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	await("Check", checked)
	await("Pulse", pulsed)
	await("Idle", idle)
	if !errors.Is(err, ErrFenced) {
		t.Errorf("Check after the end: %v", err)
	}
	if l := campaign(t, m); l.Check() != nil {
		t.Errorf("the next leadership: %v", l.Check())
	}
}
