//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
)

func init() {
	// A worker whose leader makes its garbage collector run all the time, with
	// a live heap that is large enough to keep it busy.
	parts["worker-allocates"] = func() {
		type node struct {
			next  *node
			depth int
			_     [3]uint64
		}
		const longest = 16 // of a chain: the heap stays at some 100 MB
		fmt.Println(coord.Run(context.Background(), func(ctx context.Context, _ *coord.Leadership) error {
			for range runtime.GOMAXPROCS(0) {
				go func() {
					keep := make([]*node, 1<<16)
					for i := 0; ctx.Err() == nil; i++ {
						n := &node{}
						if old := keep[(i*7919)%len(keep)]; old != nil && old.depth < longest {
							n.next, n.depth = old, old.depth+1
						}
						keep[i%len(keep)] = n
					}
				}()
			}
			<-ctx.Done()
			return nil
		}))
		os.Exit(1)
	}
	parts["spin"] = func() {
		//lint:ignore SA5002 to keep a processor busy is what it is for
		for {
		}
	}
}

// Nobody is taken for hung who is not, with the default tick and grace: while
// every processor is busy, and with a leader that allocates as hard as it can.
// Ten minutes of each; only in a soak, because it says something about the
// machine, too.
func TestNoFalseAlarm(t *testing.T) {
	soak := os.Getenv("SOAK")
	if soak == "" {
		t.Skip("takes its time; SOAK=1 runs it for ten minutes, SOAK=20s for that")
	}
	lasts, err := time.ParseDuration(soak)
	if err != nil {
		lasts = 10 * time.Minute
	}
	for _, c := range []struct {
		name, part string
		spinners   int
	}{
		{"busy", "worker-idle", runtime.NumCPU()},
		{"allocates", "worker-allocates", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := configure(t, fmt.Sprintf(`
[role.calm]
command = ["@SELF", "@DIR"]
env = { E2E_PLAYS = %q }
`, c.part))
			d.start()
			before := d.whole("calm")
			for range c.spinners {
				cmd := exec.Command(os.Args[0], d.dir)
				cmd.Env = append(os.Environ(), playsEnv+"=spin", "GOMAXPROCS=1")
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
			}
			seg, err := shm.OpenReadOnly(before.Segment)
			if err != nil {
				t.Fatal(err)
			}
			defer seg.Close()
			e, grace := election.Attach(seg), int64(seg.Grace())
			late := make([]int, grace+3) // looks that found the leader so many epochs behind
			var most int64
			for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				behind := max(e.Behind(), 0)
				most = max(most, behind)
				late[min(behind, grace+2)]++
			}
			t.Logf("in %s the leader was at most %d epochs of %v behind, the grace is %d; looks by epochs behind: %v",
				lasts, most, seg.Tick(), grace, late)
			after := d.whole("calm")
			if after.LeaderPID != before.LeaderPID || after.Term != before.Term {
				t.Errorf("the leader was taken for hung: term %d became %d; a grace of more than %d would have held (most epochs behind)", before.Term, after.Term, most)
			}
			for _, r := range d.history("calm") {
				if r.Term > before.Term {
					t.Errorf("a failover without a reason: %+v", r)
				}
			}
			d.verify("calm")
		})
	}
}
