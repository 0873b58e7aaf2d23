//go:build linux

package proc

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A hurried thread is scheduled as asked for, and as before once it is slowed,
// also by another thread.
func TestHurryThread(t *testing.T) {
	for name, pace := range map[string]Pace{"normal": PaceNormal, "nice": PaceNice, "fifo": PaceFIFO} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			look := func() unix.SchedAttr {
				a, err := unix.SchedGetAttr(0, 0)
				if err != nil {
					t.Skip(err)
				}
				return *a
			}
			before := look()
			h, err := HurryThread(pace)
			if err != nil && pace == PaceNormal {
				t.Fatal(err)
			}
			during := look()
			switch {
			case err != nil:
				t.Log(err)
			case pace == PaceNice && during.Nice != -20:
				t.Errorf("nice %d", during.Nice)
			case pace == PaceFIFO && during.Policy != unix.SCHED_FIFO:
				t.Errorf("policy %d", during.Policy)
			case pace == PaceNormal && before.Runtime != 0 && during.Runtime != shortSlice: // 0: the kernel knows no slices
				t.Errorf("a slice of %d ns", during.Runtime)
			}
			slack := func() int {
				n, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if n := slack(); n > timerSlack { // 0 under SCHED_FIFO
				t.Errorf("a timer slack of %d ns", n)
			}
			h.Round()
			if n := slack(); pace != PaceFIFO && n == timerSlack {
				t.Error("the timer slack stays")
			}
			done := make(chan struct{})
			go func() { defer close(done); h.Slow() }()
			<-done
			if after := look(); after != before {
				t.Errorf("it was %+v, and is %+v", before, after)
			}
		})
	}
}
