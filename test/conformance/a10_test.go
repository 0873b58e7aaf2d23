//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/test/eventually"
)

// TestA10_RestartRacesWithTheExit: restart, also rolling, scale, reload, stop,
// start and kill -9 of workers come from three sides in random order. At no
// moment has a place two processes, so there are never more than the places;
// each process that runs is on the list that a next standbyd would adopt, and
// in status; and at the end the role is what the config says.
func TestA10_RestartRacesWithTheExit(t *testing.T) {
	t.Parallel()
	const most = 5
	text := func(n int) string {
		return fmt.Sprintf(`[role.kv]
command = [$TW, "-leads", "$DIR/leads"]
workers = 3
env = { ROUND = "%d" }
restart_delay = "1ms"
restart_max_delay = "5ms"
burst = 1000000
failovers = 1000000
`, n)
	}
	d := newDaemon(t, text(0))
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	client := api.NewClient(filepath.Join(d.dir, "run", api.SocketName))
	ctx, end := context.WithTimeout(t.Context(), long(4*time.Second, time.Minute))
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	var done [8]atomic.Int64 // by what
	var round atomic.Int64
	for side := range uint64(3) {
		random := rand.New(rand.NewPCG(seed, side))
		all.Go(func() {
			for ctx.Err() == nil {
				// Not so often what leaves nothing to hammer at.
				what := []int{0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 6, 7, 7, 7}[random.IntN(17)]
				worker := fmt.Sprintf("kv/%d", random.IntN(most))
				var err error
				switch what {
				case 0:
					_, err = client.ByHand(ctx, "restart", api.HandRequest{Target: worker, NoWait: true})
				case 1:
					_, err = client.ByHand(ctx, "restart", api.HandRequest{Target: "kv", NoWait: true})
				case 2:
					_, err = client.RestartRolling(ctx, "kv")
				case 3:
					_, err = client.Scale(ctx, "kv", 1+random.IntN(most))
				case 4:
					d.configure(folders + text(int(round.Add(1))))
					_, err = client.Reload(ctx, false)
				case 5:
					_, err = client.ByHand(ctx, "stop", api.HandRequest{Target: worker, LimitMS: 100})
				case 6:
					_, err = client.ByHand(ctx, "start", api.HandRequest{Target: "kv", LimitMS: 500})
				default:
					if list := d.running(); len(list) > 0 {
						err = syscall.Kill(list[random.IntN(len(list))].PID, syscall.SIGKILL)
					}
				}
				if err == nil { // a refusal is fine: what matters is what runs
					done[what].Add(1)
				}
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
		})
	}
	samples, crowd := 0, 0
	missing := map[running]time.Time{} // not in status, and since when
	for ctx.Err() == nil {
		list := d.running()
		crowd = max(crowd, len(list))
		d.never2(list)
		onList := d.onList()
		status, err := client.Status(t.Context())
		if err != nil {
			t.Fatalf("standbyd does not answer: %v", err)
		}
		shown := map[string]int{}
		for _, w := range status.Roles[0].Workers {
			shown[w.Name] = w.PID
		}
		samples++
		for _, r := range list {
			if !r.alive() {
				delete(missing, r)
				continue
			}
			// It ran before the list was read, and does still.
			if !slices.Contains(onList, r.PID) {
				t.Errorf("%s (pid %d) runs, and is not among the listed %v", r.worker, r.PID, onList)
			}
			if shown[r.worker] == r.PID {
				delete(missing, r)
			} else if _, ok := missing[r]; !ok {
				missing[r] = time.Now()
			} else if time.Since(missing[r]) > patience/2 {
				t.Errorf("%s (pid %d) runs, and status shows %v", r.worker, r.PID, shown)
			}
		}
		if t.Failed() {
			end()
		}
		time.Sleep(5 * time.Millisecond)
	}
	all.Wait()
	var counts []int64
	for i := range done {
		counts = append(counts, done[i].Load())
	}
	t.Logf("%d samples; restart of one, of all, rolling, scale, reload, stop, start, kill -9: %v; at most %d workers at once, %d leaderships",
		samples, counts, crowd, len(d.leaderships()))
	for i, n := range counts {
		if n == 0 && os.Getenv("CONFORMANCE") != "" {
			t.Errorf("nothing came of number %d at all", i)
		}
	}
	if crowd > most {
		t.Errorf("%d workers ran at once, there are %d places", crowd, most)
	}
	d.configure(folders + text(0))
	eventually.Holds(t, "the config is as it was", func() bool {
		_, err := d.run("reload")
		return err == nil
	})
	d.must("start", "kv")
	d.whole()
	if list := d.listed(); len(list) != 3 {
		t.Errorf("%v run, want three", list)
	}
	d.leaderships()
}

// onList are the pids of the list that the next standbyd would adopt.
func (d *daemon) onList() (pids []int) {
	d.t.Helper()
	var list struct {
		Workers []struct{ Identity struct{ PID int } }
	}
	b, err := os.ReadFile(filepath.Join(d.dir, "run/roles/kv/workers.json"))
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		d.t.Error(err)
	}
	for _, w := range list.Workers {
		pids = append(pids, w.Identity.PID)
	}
	return pids
}
