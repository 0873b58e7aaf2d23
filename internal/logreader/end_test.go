//go:build linux

package logreader

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
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

// A reader whose supervisor was killed while it began hears that it has to end,
// too.
func TestBeginningReaderIsEnded(t *testing.T) {
	for i := range 20 {
		g := newRig(t)
		first := exec.Command("/proc/self/exe")
		first.Env = append(os.Environ(), "TEST_SUPERVISE="+g.dir)
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(limit); len(others(g.dir, proc.Identity{})) == 0; {
			if time.Now().After(end) {
				t.Fatal("no reader begins")
			}
		}
		time.Sleep(time.Duration(i) * 200 * time.Microsecond)
		first.Process.Kill()
		first.Wait()
		began := time.Now()
		if err := EndAny(g.dir); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took >= endWait {
			t.Fatalf("round %d: it ended after %v, which is the limit for a disk that hangs", i, took)
		}
	}
}
