package page

import (
	"strings"
	"testing"
	"time"
)

func TestTimeThatTheHostTook(t *testing.T) {
	const stat = "cpu  15558 0 17397 180128 300 0 291 1950 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
	if got := stolen(stat); got != 19500*time.Millisecond {
		t.Errorf("stolen = %v", got)
	}
	for _, odd := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", strings.Replace(stat, "1950", "many", 1)} {
		if got := stolen(odd); got != -1 {
			t.Errorf("stolen(%q) = %v", odd, got)
		}
	}
	at := func(stolen, since time.Duration) Machine {
		return Machine{Stolen: stolen, When: time.Unix(0, 0).Add(since)}
	}
	if got := lost(at(time.Second, 0), at(3*time.Second, 100*time.Second)); !strings.HasPrefix(got, "2s, ") || !strings.HasSuffix(got, " % of the time") {
		t.Errorf("lost = %q", got)
	}
	for _, unknown := range [][2]time.Duration{{-1, 3}, {3, 1}} { // nothing to read, and another boot
		if got := lost(at(unknown[0], 0), at(unknown[1], time.Second)); got != "unknown" {
			t.Errorf("lost(%v) = %q", unknown, got)
		}
	}
}
