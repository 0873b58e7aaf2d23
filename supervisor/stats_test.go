package supervisor

import (
	"testing"
	"time"
)

func TestTickLateness(t *testing.T) {
	var l load
	for _, late := range []time.Duration{-time.Millisecond, 0, 100 * time.Microsecond, 101 * time.Microsecond, 3 * time.Second, time.Hour} {
		l.tick(late)
	}
	s := l.read("kv")
	if s.Role != "kv" || s.Ticks != 6 || s.LateSum != time.Hour+3*time.Second+201*time.Microsecond {
		t.Errorf("%+v", s)
	}
	want := [len(LatenessBounds)]uint64{3, 4, 4, 4, 4, 4, 4, 5}
	if s.Late != want {
		t.Errorf("buckets %v, want %v", s.Late, want)
	}
}
