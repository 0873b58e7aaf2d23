//go:build linux

package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestA09_TwoStartAtOnce: twenty standbyds begin at the same moment, round
// after round: on new folders, on those of one that was killed, whose workers
// live, and on those that one has left in order. Exactly one goes on, and
// adopts what there is; the others end with status 1 and name its pid.
func TestA09_TwoStartAtOnce(t *testing.T) {
	t.Parallel()
	d := writeConfig(t, `[role.kv]
command = [$TW, "-leads", "$DIR/leads"]
workers = 2
`)
	for round := range int(long(3, 100)) {
		before := map[string]int{}
		for _, r := range d.running() {
			before[r.worker] = r.PID
		}
		led := len(d.leaderships())
		d.race(20)
		d.must("wait", "kv", "-T", "1m")
		d.whole()
		if n := len(d.listed()); n != 2 {
			t.Errorf("round %d: %d workers run", round, n)
		}
		after := len(d.leaderships())
		switch {
		case len(before) > 0 && (after != led || !maps.Equal(d.pids(), before)):
			t.Errorf("round %d: %d new leaderships, workers %v; %v were there to adopt", round, after-led, d.pids(), before)
		case len(before) == 0 && after != led+1:
			t.Errorf("round %d: %d new leaderships", round, after-led)
		}
		switch round % 3 {
		case 0:
			d.kill()
		case 1:
			d.stop()
		case 2:
			d.stop()
			for _, name := range []string{"run", "state", "leads"} {
				if err := os.RemoveAll(filepath.Join(d.dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(d.running()) > 0 { // the last one was killed
		d.start()
		d.must("wait", "kv", "-T", "1m")
	}
}

// race starts n standbyds at once; the one that is left is the test's from
// here on.
func (d *daemon) race(n int) {
	d.t.Helper()
	all := make([]daemon, n)
	for i := range all {
		all[i] = daemon{t: d.t, dir: d.dir, config: d.config}
		// Each waits, stopped, for all others to be there.
		all[i].launch("/bin/sh", "-c", `kill -STOP $$; exec "$0" "$@"`, standbyd, "-c", d.config, "run")
	}
	for i := range all {
		eventually.Holds(d.t, "all are about to begin", func() bool { return stateOf(all[i].main) == "T" })
	}
	for i := range all {
		syscall.Kill(all[i].main, syscall.SIGCONT)
	}
	var won []*daemon
	over := func() bool {
		won = nil
		for i := range all {
			select {
			case <-all[i].gone:
			default:
				won = append(won, &all[i])
			}
		}
		return len(won) <= 1
	}
	for deadline := time.Now().Add(patience); !over() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if len(won) != 1 {
		for _, w := range won {
			w.kill()
		}
		d.t.Fatalf("%d of %d go on", len(won), n)
	}
	d.cmd, d.main, d.gone, d.wait, d.output = won[0].cmd, won[0].main, won[0].gone, won[0].wait, won[0].output
	for i := range all {
		if all[i].main == d.main {
			continue
		}
		if code := all[i].wait(); code != 1 || !strings.Contains(all[i].output.String(), fmt.Sprintf(": pid %d,", d.main)) {
			d.t.Errorf("one that was too late ended with %d, want 1, and should name pid %d: %s", code, d.main, all[i].output)
		}
	}
}
