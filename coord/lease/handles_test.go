package lease

import (
	"context"
	"encoding/json"
	"testing"
	"time"
)

// handleOf is what Handles says of the handle on path.
func handleOf(t *testing.T, path string) (h Handle, ok bool) {
	t.Helper()
	for _, h := range Handles() {
		if h.Path == path {
			return h, true
		}
	}
	return Handle{}, false
}

func TestHandlesCountByOperationAndOutcome(t *testing.T) {
	l := newLease(t)
	before, ok := handleOf(t, l.Path())
	if !ok || before.Type != "lease.record" || time.Since(before.OpenedAt) > time.Hour {
		t.Fatalf("%+v", before)
	}
	must(l.TryAcquire(low, 3))(t)
	for range 5 {
		l.TryAcquire(low, 3) // changes nothing
		l.ReadAsOwner(low)
		l.Snapshot()
		l.Beat(low)
	}
	l.TickEpoch()
	l.Beat(low)
	l.Beat(low)
	l.TryAcquire(high, 3)
	l.TryAcquire(high, 3)
	l.TryAcquire(0, 3)
	l.WriteAsOwner(low, rec(1))
	l.WriteAsOwner(low, rec(2))
	l.WriteAsOwner(high, rec(3))
	l.ReadAsOwner(high)
	l.Beat(high)
	h, _ := handleOf(t, l.Path())
	if h.Owner != low || h.Term != 1 {
		t.Errorf("owner %d in term %d", h.Owner, h.Term)
	}
	l.Release(high)
	l.Release(low)
	l.WithLease(high, 3, func(r *record) {})
	h, _ = handleOf(t, l.Path())
	for what, c := range map[string]struct{ got, want Outcomes }{
		"claim":   {h.Claim, Outcomes{OK: 2, Refused: 2, Failed: 1}},
		"release": {h.Release, Outcomes{OK: 2, Refused: 1}},
		"read":    {h.Read, Outcomes{Refused: 1}},
		"write":   {h.Write, Outcomes{OK: 3, Refused: 1}},
		"beat":    {h.Beat, Outcomes{OK: 1, Refused: 1}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", what, c.got, c.want)
		}
	}
}

func TestHandlesCountClaims(t *testing.T) {
	l := newLease(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := l.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.Write(rec(1))
	c.Release(ctx)
	c.Release(ctx) // answers as the first did
	ended, stop := context.WithCancel(ctx)
	stop()
	if _, err := l.Acquire(ended); err == nil {
		t.Fatal("acquired after its context ended")
	}
	h, _ := handleOf(t, l.Path())
	if h.Claim != (Outcomes{OK: 1}) || h.Release != (Outcomes{OK: 1}) || h.Write != (Outcomes{OK: 1}) {
		t.Errorf("%+v", h)
	}
}

func TestHandlesAreThoseThatAreOpen(t *testing.T) {
	path := t.TempDir() + "/lease"
	first, err := Create(path, record{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Open[record](path)
	if err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		var all []Handle
		if err := json.Unmarshal([]byte(Var{}.String()), &all); err != nil {
			t.Fatal(err)
		}
		for _, h := range all {
			if h.Path == path {
				n++
			}
		}
		return n
	}
	if n := count(); n != 2 {
		t.Errorf("%d handles, want 2", n)
	}
	second.Close()
	if n := count(); n != 1 {
		t.Errorf("%d handles after one was closed, want 1", n)
	}
	first.Close()
	first.Close()
	if n := count(); n != 0 {
		t.Errorf("%d handles after both were closed", n)
	}
}

// Looking at the handles while others open, use and close theirs.
func TestHandlesWhileHandlesComeAndGo(t *testing.T) {
	path := t.TempDir() + "/lease"
	keep, err := Create(path, record{})
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			l, err := Open[record](path)
			if err != nil {
				t.Error(err)
				return
			}
			l.WithLease(low, 3, func(r *record) { r.N++ })
			l.Close()
		}
	}()
	for {
		Handles()
		select {
		case <-done:
			return
		default:
		}
	}
}
