package coord

import (
	"errors"
	"testing"
	"time"
)

func TestPauses(t *testing.T) {
	var p pauses
	for i, want := range []time.Duration{100, 200, 400, 800, 1600} {
		if d := p.next(false, 0, 0); d != want*time.Millisecond {
			t.Errorf("pause %d is %v, want %v", i, d, want*time.Millisecond)
		}
	}
	for range 100 {
		if d := p.next(true, 0, 0.999); d > pauseLongest || d < pauseLongest/2 && p.row > 12 {
			t.Fatalf("pause %v after %d in a row", d, p.row)
		}
	}
	if d := p.next(false, pauseLongest+1, 0); d != pauseAfterResign {
		t.Errorf("after a long leadership: %v, want %v", d, pauseAfterResign)
	}
	var q pauses
	if d := q.next(true, 0, 0); d != pauseAfterError {
		t.Errorf("after an error: %v, want %v", d, pauseAfterError)
	}
}

func TestPauseAfterLeadership(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		err, cause error
		want       time.Duration
	}{
		{nil, nil, pauseAfterResign},
		{failed, nil, pauseAfterError},
		{failed, ErrResigned, pauseAfterResign},
		{failed, ErrLost, 0},
		{nil, ErrAskedToResign, pauseAfterResign},
		{nil, ErrRoleClosed, pauseAfterResign},
		{nil, ErrStalled, pauseAfterError},
	} {
		var p pauses
		if d := p.after(c.err, c.cause, 0, 0); d != c.want {
			t.Errorf("lead returned %v, cause %v: pause %v, want %v", c.err, c.cause, d, c.want)
		}
	}
	var p pauses
	for range 200 { // switchovers to and fro take nobody out of the race
		if d := p.after(nil, ErrAskedToResign, 0, 0); d != pauseAfterResign {
			t.Fatalf("pause %v", d)
		}
	}
}
