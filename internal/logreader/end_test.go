//go:build linux

package logreader

import (
	"testing"
	"time"
)

// An order to end that comes while the reader is still being told what to read
// is heard at once: nobody waits for as long as a reader may take whose disk
// hangs.
func TestEndWhileItStarts(t *testing.T) {
	for i := range 20 {
		g := newRig(t)
		g.supervise()
		time.Sleep(time.Duration(i) * time.Millisecond) // it takes about that long
		began := time.Now()
		g.r.End()
		if took := time.Since(began); took >= endWait {
			t.Fatalf("round %d: it ended after %v, which is the limit for a disk that hangs", i, took)
		}
		g.r = nil
	}
}
