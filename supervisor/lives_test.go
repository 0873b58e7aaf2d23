package supervisor

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// descriptors counts our open files, without the ones of the runtime itself.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(entries)
}

func zombies(t *testing.T) (n int) {
	t.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, _ := os.ReadFile(path)
		rest := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(rest) > 1 && rest[0] == "Z" && rest[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

// TestNothingIsLeftOfManyLives counts what 1,000 lives cost for good:
// descriptors, goroutines, zombies. It is content with those of five seconds,
// and some more than it began with.
func TestNothingIsLeftOfManyLives(t *testing.T) {
	const lives = 1000
	enough := time.Now().Add(5 * time.Second)
	c := newConfig(t, "exit")
	r := &c.Roles[0]
	r.RestartDelay, r.RestartMaxDelay, r.Burst = 0, 0, 1<<30
	w := start(t, c)
	lived := func(n int, enough time.Time) int {
		for {
			total := 0
			for _, ws := range w.sup.Snapshot().Roles[0].Workers {
				total += ws.Restarts
			}
			if total >= n || time.Now().After(enough) {
				return total
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	patience := time.Now().Add(8 * limit) // a life takes a second where everything is busy
	lived(30, patience)
	files, routines := descriptors(t), runtime.NumGoroutine()
	if total := lived(100, patience); total < 100 {
		t.Fatalf("only %d lives", total)
	}
	lived(lives, enough)
	// What the three present lives need comes and goes.
	const slack = 3 * 8
	if now := descriptors(t); now > files+slack {
		t.Errorf("%d descriptors, were %d", now, files)
	}
	if now := runtime.NumGoroutine(); now > routines+slack {
		t.Errorf("%d goroutines, were %d", now, routines)
	}
	w.shutdown()
	if n := zombies(t); n > 0 {
		t.Errorf("%d zombies", n)
	}
}

// TestRunGivesEverythingBack: a supervisor that has ended holds nothing.
func TestRunGivesEverythingBack(t *testing.T) {
	run := func() {
		c := newConfig(t, "good")
		c.Roles[0].Listen = []ListenConfig{{Name: "http", Address: "127.0.0.1:0"}}
		c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: &recorder{}}}
		w := start(t, c)
		w.until("the role is led", led)
		w.shutdown()
	}
	run()
	files := descriptors(t)
	run()
	eventually.Holds(t, "the descriptors are given back", func() bool { return descriptors(t) <= files })
}

// TestManySupervisorsAtOnce: one goes on, the others say so and end.
func TestManySupervisorsAtOnce(t *testing.T) {
	c := newConfig(t, "good")
	const n = 6
	type result struct {
		pid  int
		code int
	}
	results := make(chan result, n)
	for range n {
		cmd := apart(t, c)
		go func() { results <- result{cmd.process.Pid, cmd.wait()} }()
	}
	for range n - 1 {
		select {
		case r := <-results:
			if r.code != 1 {
				t.Errorf("pid %d ended with %d", r.pid, r.code)
			}
		case <-time.After(limit):
			t.Fatal("more than one goes on")
		}
	}
	list := readyApart(t, c, 1)
	if len(list.Workers) != 3 {
		t.Errorf("%d workers", len(list.Workers))
	}
}

// TestTokenFenceLetsTheOldLeaderLive: under fence = "token" the drill's
// stopped leader is not killed, sees its loss when it goes on, and rejoins.
func TestTokenFenceLetsTheOldLeaderLive(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Fence, c.Roles[0].Grace = FenceToken, 6
	w := start(t, c)
	before := w.until("the role is full", full)
	records, err := w.sup.Drill(t.Context(), "kv", DrillOptions{Fault: "stop"}, nil)
	if err != nil || records[0].Term != 2 {
		t.Fatalf("%+v, %v", records, err)
	}
	w.until("the old leader is a standby", func(r RoleStatus) bool {
		for _, ws := range r.Workers {
			if ws.PID == before.LeaderPID {
				return ws.State == WorkerStandby && full(r)
			}
		}
		return false
	})
	eventually.Holds(t, "its lead has ended", func() bool {
		return strings.Contains(strings.Join(w.leads(), "\n"), "end 1.1 "+strconv.Itoa(before.LeaderPID))
	})
}
