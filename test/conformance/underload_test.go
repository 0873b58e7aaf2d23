//go:build linux

package conformance

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestUnderLoad_NothingIsRefused: 1,000 writes a second (300 in the quick
// form), while leaders, standbys and standbyd are killed, and the role goes
// through switchovers, rolling restarts, reloads and scaling. None is refused,
// none is reset by a drain; those that were in flight on a killed process are
// counted; and what was acknowledged is there in the end.
func TestUnderLoad_NothingIsRefused(t *testing.T) {
	besideOthers(t)
	program, err := kv()
	if err != nil {
		t.Fatal(err)
	}
	const head = "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n"
	d := storeDaemon(t, "", "")
	l := newLoad(t, "http://"+d.roles()["kv"].Listen[0].Address, int(long(300, 1000)))
	edits := 0
	kill := func(leader bool) {
		r := d.roles()["kv"]
		for _, w := range r.Workers {
			if (w.PID == r.LeaderPID) != leader {
				continue
			}
			killed := func() {}
			if leader {
				killed = l.kills(r.Token.String())
			}
			syscall.Kill(w.PID, syscall.SIGKILL)
			killed()
			eventually.Holds(t, "the killed one is noticed", func() bool {
				now := d.roles()["kv"]
				return !leader || now.Token > r.Token
			})
			return
		}
	}
	does := map[string]func(){
		"leader killed":  func() { kill(true) },
		"standby killed": func() { kill(false) },
		"failover": func() {
			killed := l.kills(d.roles()["kv"].Token.String())
			d.must("failover", "kv")
			killed()
		},
		"switchover":      func() { d.must("switchover", "kv") },
		"rolling restart": func() { d.must("restart", "--rolling", "kv") },
		"reload that restarts": func() {
			edits++
			d.configure(head + storeText(program, "", fmt.Sprintf("env = { EDIT = \"%d\" }", edits)))
			d.must("reload")
		},
		"scale up":   func() { d.must("scale", "kv", "5") },
		"scale down": func() { d.must("scale", "kv", "2") },
		"standbyd killed": func() {
			d.kill()
			d.start()
		},
	}
	order := []string{"leader killed", "switchover", "scale up", "rolling restart", "leader killed", "scale down", "reload that restarts", "standbyd killed", "switchover", "standby killed", "failover"}
	done := map[string]int{}
	until := time.Now().Add(long(8*time.Second, time.Minute))
	for i := 0; i < len(order) || time.Now().Before(until); i++ {
		what := order[i%len(order)]
		does[what]()
		done[what]++
		d.must("wait", "kv", "--for", "ready", "-T", "1m")
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
	}
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	c := l.over()
	t.Logf("%d writes sent, %d acknowledged, %d refused, %d reset by a drain, %d answered with an error; %d in flight on one of %d processes that were killed while they led; done: %v",
		c.sent, c.acked, c.refused, c.reset, c.unavailable, c.inFlight, len(l.killed), done)
	if c.refused+c.reset+c.unavailable > 0 {
		t.Errorf("%+v", c)
	}
}
