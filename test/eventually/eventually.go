// Package eventually lets tests wait for what happens by itself in other
// goroutines and processes. It says nothing about how fast that is: the limit
// is what a busy machine may need at the worst.
package eventually

import (
	"testing"
	"time"
)

// Limit is how long a test waits for one thing.
const Limit = 2 * time.Minute

// Looks come fast at first, for what is there at once, and then so seldom
// that they take nothing from what is waited for.
const (
	firstPause = time.Millisecond
	mostPause  = 10 * time.Millisecond
)

// Holds waits until ok returns true, and ends the test with what was waited
// for if it does not within Limit. It looks from the goroutine of the caller,
// which must be that of the test.
func Holds(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !within(Limit, ok) {
		t.Fatalf("not within %v: %s", Limit, what)
	}
}

// Shows is Holds for a look that also says what it saw: the failure has what
// it said last.
func Shows(t testing.TB, what string, look func() (ok bool, seen string)) {
	t.Helper()
	var seen string
	if !within(Limit, func() (ok bool) { ok, seen = look(); return ok }) {
		t.Fatalf("not within %v: %s; last seen: %s", Limit, what, seen)
	}
}

// within looks at least once, and a last time when limit is over.
func within(limit time.Duration, ok func() bool) bool {
	deadline := time.Now().Add(limit)
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		last := time.Now().After(deadline)
		if ok() {
			return true
		}
		if last {
			return false
		}
		time.Sleep(pause)
	}
}
