package eventually

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// judged takes the failure of a wait instead of the test.
type judged struct {
	testing.TB
	text string
}

func (j *judged) Helper() {}

func (j *judged) Fatalf(format string, args ...any) { j.text = fmt.Sprintf(format, args...) }

func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		Holds(t, "the third look", func() bool { looks++; return looks == 3 })
		if looks != 3 {
			t.Errorf("%d looks", looks)
		}
		var j judged
		Holds(&j, "a wonder", func() bool { return false })
		if j.text != "not within 2m0s: a wonder" {
			t.Errorf("%q", j.text)
		}
		looks = 0
		Shows(&j, "a wonder", func() (bool, string) { looks++; return false, fmt.Sprintf("look %d", looks) })
		if want := fmt.Sprintf("last seen: look %d", looks); !strings.HasSuffix(j.text, want) {
			t.Errorf("%q, want %q", j.text, want)
		}
	})
}
