//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/supervisor"
)

// TestA15_RollingRestartDropsConnections: 1,000 writes a second (300 in the
// quick form) while the role is restarted, rolling, again and again, and one
// worker takes long to get ready: not one write fails; nobody is stopped before
// the one before is ready; and if a new one never gets ready the others stay.
func TestA15_RollingRestartDropsConnections(t *testing.T) {
	besideOthers(t)
	slow := long(time.Second, 10*time.Second)
	d := storeDaemon(t, fmt.Sprintf("[ $STANDBYD_WORKER = kv-1 ] && sleep %d; [ -e $DIR/broken ] && exec sleep 1000; ", int(slow.Seconds())), "start_timeout = \"20s\"\n")
	l := newLoad(t, "http://"+d.roles()["kv"].Listen[0].Address, int(long(300, 1000)))

	// Never is more than one worker missing.
	over := make(chan struct{})
	var watch sync.WaitGroup
	missing := func(r supervisor.RoleStatus) (n int) {
		for _, w := range r.Workers {
			if !w.Ready {
				n++
			}
		}
		return n
	}
	watch.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if r := d.roles()["kv"]; missing(r) > 1 {
				t.Errorf("%d of %d workers are not ready: %+v", missing(r), len(r.Workers), r.Workers)
				return
			}
		}
	})
	end := sync.OnceFunc(func() { close(over); watch.Wait() })
	defer end()

	rounds := 0
	for until := time.Now().Add(long(3*time.Second, time.Minute)); rounds < 2 || time.Now().Before(until); rounds++ {
		before := d.pids()
		leader := d.roles()["kv"].Leader
		var done supervisor.Rolled
		if err := json.Unmarshal([]byte(d.must("restart", "--rolling", "kv", "-o", "json")), &done); err != nil {
			t.Fatal(err)
		}
		if len(done.Started) != 3 || done.Started[2] != leader || d.stayed("kv", before) != 0 {
			t.Errorf("round %d, with leader %s: %+v; workers %v, were %v", rounds, leader, done, d.pids(), before)
		}
	}

	// A new one that never gets ready: it alone is lost.
	if err := os.WriteFile(filepath.Join(d.dir, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before, led := d.pids(), d.roles()["kv"]
	d.configure(strings.Replace(mustRead(t, d.config), `start_timeout = "20s"`, `start_timeout = "2s"`, 1))
	d.must("reload") // holds at once, nothing is restarted
	out, err := d.run("restart", "--rolling", "kv")
	if status(err) != 1 || !strings.Contains(out, "did not get ready") {
		t.Errorf("restart --rolling of what never gets ready ended with %d: %s", status(err), out)
	}
	if r := d.roles()["kv"]; d.stayed("kv", before) != 2 || r.LeaderPID != led.LeaderPID || r.Token != led.Token {
		t.Errorf("workers %v, were %v; leader %d with %s, was %d with %s", d.pids(), before, r.LeaderPID, r.Token, led.LeaderPID, led.Token)
	}
	end()
	c := l.over()
	t.Logf("%d rolling restarts; %d writes sent, %d acknowledged, %d refused, %d reset, %d answered with an error", rounds, c.sent, c.acked, c.refused, c.reset, c.unavailable)
	if c.acked+c.overloaded != c.sent {
		t.Errorf("%+v", c)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
