//go:build linux

package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestA03_SupervisorTakesWorkersAlong: workers that are long to warm up are
// never started again because of standbyd: it is killed while they warm up,
// and while they serve; and it is replaced by another program, which waits for
// its end. Every request in that time is served, by the same leader.
func TestA03_SupervisorTakesWorkersAlong(t *testing.T) {
	t.Parallel()
	warmUp := long(2*time.Second, 30*time.Second)
	d := newDaemon(t, fmt.Sprintf(`[role.kv]
command = [$TW, "-ready-after", %q, "-serve", "-leads", "$DIR/leads"]
workers = 3
start_timeout = "5m"
[[role.kv.listen]]
name = "http"
address = "127.0.0.1:0"
`, warmUp))
	eventually.Holds(t, "three workers run", func() bool { return len(d.running()) == 3 })
	pids := map[string]int{}
	for _, r := range d.running() {
		pids[r.worker] = r.PID
	}
	d.kill()
	if len(d.leaderships()) > 0 {
		t.Fatal("somebody leads already: nobody was killed while workers warm up")
	}
	d.start()
	d.must("wait", "kv", "-T", "2m")
	d.whole()
	before := d.roles()["kv"]
	if !maps.Equal(d.pids(), pids) {
		t.Fatalf("workers %v after standbyd was killed while %v were warming up", d.pids(), pids)
	}
	c := callers(t, before.Listen[0].Address, before.LeaderPID)
	next := filepath.Join(d.dir, "standbyd-next") // another file is another version
	copyFile(t, standbyd, next)
	for i := range int(long(2, 6)) {
		c.more(20)
		// A crash: for a while there is no standbyd.
		d.kill()
		c.more(200)
		d.start()
		d.must("wait", "kv", "-T", "1m")
		c.more(20)
		// An upgrade: the next one waits for the end of this one.
		old, program := *d, next
		if i%2 == 1 {
			program = standbyd
		}
		d.launch(program, "-c", d.config, "run", "--wait")
		eventually.Holds(t, "the next one waits", func() bool { return strings.Contains(d.output.String(), fmt.Sprintf("pid %d", old.main)) })
		old.kill()
		eventually.Holds(t, "the next one answers", func() bool {
			out, err := d.run("status", "-o", "json")
			return err == nil && strings.Contains(out, fmt.Sprintf(`"pid":%d`, d.main))
		})
		d.whole()
		c.more(20)
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", d.main)); exe != program {
			t.Errorf("%s supervises, want %s; %v", exe, program, err)
		}
		after := d.roles()["kv"]
		if !maps.Equal(d.pids(), pids) || after.Token != before.Token || after.Listen[0].Address != before.Listen[0].Address {
			t.Fatalf("round %d: %v, token %s on %s; there were %v, token %s on %s", i, d.pids(), after.Token, after.Listen[0].Address, pids, before.Token, before.Listen[0].Address)
		}
	}
	c.close()
	if n := len(d.leaderships()); n != 1 || len(d.listed()) != 3 {
		t.Errorf("somebody led %d times, %d workers run", n, len(d.listed()))
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// calls are clients that ask all the time; none of their requests may fail.
type calls struct {
	t      *testing.T
	end    context.CancelFunc
	all    sync.WaitGroup
	served atomic.Int64
	failed atomic.Int64
}

// callers starts them: two that keep their connection, two that do not. Every
// answer must be this pid.
func callers(t *testing.T, address string, pid int) *calls {
	ctx, end := context.WithCancel(t.Context())
	c := &calls{t: t, end: end}
	for i := range 4 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: i%2 == 1}, Timeout: patience}
		c.all.Go(func() {
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				err := call(ctx, client, address, pid)
				switch {
				case ctx.Err() != nil:
				case err == nil:
					c.served.Add(1)
				case c.failed.Add(1) < 4:
					t.Errorf("a request failed: %v", err)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { end(); c.all.Wait() })
	return c
}

func call(ctx context.Context, client *http.Client, address string, pid int) error {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+address, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && string(b) != fmt.Sprint(pid) {
		err = errors.New("served by " + string(b))
	}
	return err
}

// more waits until so many further requests are served.
func (c *calls) more(n int64) {
	c.t.Helper()
	n += c.served.Load()
	eventually.Holds(c.t, "requests are served", func() bool { return c.served.Load() >= n })
}

func (c *calls) close() {
	c.end()
	c.all.Wait()
	c.t.Logf("%d requests served, %d failed", c.served.Load(), c.failed.Load())
}
