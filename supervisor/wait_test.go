package supervisor

import (
	"context"
	"strings"
	"testing"
)

// TestWaitTakesOverFromTheFirst: and adopts its workers when it was killed; in
// one process it can only be stopped.
func TestWaitTakesOverFromTheFirst(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	w.until("the role is led", led)
	c.Wait = true
	other, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events := other.Subscribe(ctx)
	ended := make(chan error, 1)
	go func() { ended <- other.Run(ctx) }()
	if e := <-events; e.Type != EventWarning || !strings.Contains(e.Text, "waiting for its end: another supervisor is running on "+c.StateDir) {
		t.Fatalf("first event is %+v", e)
	}
	// One that is stopped while it waits has done nothing.
	third, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	thirdCtx, stop := context.WithCancel(context.Background())
	thirdEvents := third.Subscribe(ctx)
	thirdEnded := make(chan error, 1)
	go func() { thirdEnded <- third.Run(thirdCtx) }()
	<-thirdEvents
	stop()
	if err := <-thirdEnded; err != nil {
		t.Errorf("stopped while waiting: %v", err)
	}
	w.shutdown()
	for e := range events {
		if e.Type == EventSupervisorStarted {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
