//go:build linux

package conformance

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// beatWatchdog does what a worker of a role with a watchdog has to.
func beatWatchdog() {
	limit, _ := strconv.Atoi(os.Getenv("WATCHDOG_USEC"))
	c, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil || limit == 0 {
		panic("no watchdog to beat")
	}
	for ; ; time.Sleep(time.Duration(limit) * time.Microsecond / 5) {
		c.Write([]byte("WATCHDOG=1"))
	}
}

// TestA21_ClockTrouble: everything stands still, as on a machine that was
// suspended, for much longer than any limit, and goes on in whatever order:
// nobody is taken for hung or silent, and nobody is killed. If the leader
// alone stands still, another one leads.
func TestA21_ClockTrouble(t *testing.T) {
	t.Parallel()
	// What may not run out in the freeze: grace, watchdog, health, and the time of a start.
	limit := long(4*time.Second, 10*time.Second) // of the watchdog; a hang is found after 4 s
	d := newDaemon(t, fmt.Sprintf(`[role.kv]
command = [$TW, "-watchdog", "-leads", "$DIR/leads"]
workers = 3
tick = "50ms"
grace = 80
watchdog = %q
failovers = 1000
[role.kv.health]
exec = ["true"]
interval = "500ms"
timeout = "2s"
threshold = 1

[role.warms]
command = [$TW, "-ready-after", "10m"]
workers = 1
start_timeout = "10m"
`, limit))
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	before := d.roles()["kv"]
	pids := d.pids()
	if len(pids) != 4 {
		t.Fatalf("the workers are %v", pids)
	}
	freeze := long(6*time.Second, 30*time.Second)
	// standbyd goes on first; and, in the long form, last, when all others do already.
	for _, last := range []bool{false, true}[:long(1, 2)] {
		all := append([]int{d.main}, slices.Collect(maps.Values(pids))...)
		for _, pid := range all {
			syscall.Kill(pid, syscall.SIGSTOP)
		}
		time.Sleep(freeze)
		if last {
			slices.Reverse(all)
		}
		for _, pid := range all {
			syscall.Kill(pid, syscall.SIGCONT)
		}
		time.Sleep(limit + time.Second) // in which each limit would be found exceeded
		d.must("wait", "kv", "--for", "ready", "-T", "1m")
		after := d.roles()["kv"]
		if now := d.pids(); !maps.Equal(now, pids) || after.Token != before.Token || len(d.leaderships()) != 1 {
			t.Fatalf("standbyd went on last: %v; workers %v, were %v; token %s, was %s", last, now, pids, after.Token, before.Token)
		}
	}

	syscall.Kill(before.LeaderPID, syscall.SIGSTOP)
	next := d.led(2)
	if next.pid == before.LeaderPID {
		t.Errorf("the stopped leader leads again: %+v", next)
	}
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	after := d.roles()["kv"]
	if after.LeaderPID != next.pid || after.LastFailover == nil || after.LastFailover.Reason != "hang" {
		t.Errorf("after the freeze of the leader alone: %+v, %+v", after, after.LastFailover)
	}
	if now := d.pids(); now["warms-0"] != pids["warms-0"] {
		t.Errorf("a worker that had nothing to do with it was replaced: %v, were %v", now, pids)
	}
}
