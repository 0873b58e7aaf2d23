//go:build linux

package conformance

import (
	"slices"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// TestA06_DeadIsTakenForAlive: strangers have the pids of a dead leader and of
// a dead standbyd before anybody has looked. A standby leads all the same, and
// the next standbyd starts and starts a new worker. Missing beats cannot be
// what helps: they would count as a hang after half an hour.
func TestA06_DeadIsTakenForAlive(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	d := newDaemon(t, `[role.kv]
command = [$TW, "-leads", "$DIR/leads"]
workers = 3
tick = "100ms"
grace = 18000
fence_timeout = "1h"
`)
	var leader, daemon *stranger
	var led int
	for range 5 {
		d.must("wait", "kv", "-T", "1m")
		d.whole()
		before := d.roles()["kv"]
		led = len(d.leaderships())
		d.kill()
		var standbys []int
		for _, r := range d.running() {
			if r.PID != before.LeaderPID {
				standbys = append(standbys, r.PID)
				syscall.Kill(r.PID, syscall.SIGSTOP)
			}
		}
		for _, pid := range standbys {
			eventually.Holds(t, "the standbys are stopped", func() bool { return stateOf(pid) == "T" })
		}
		endOf(t, before.LeaderPID)
		leader, daemon = takePID(t, before.LeaderPID), takePID(t, d.main)
		if n := len(d.leaderships()); n != led {
			t.Fatalf("somebody led for the %dth time while everybody was stopped", n)
		}
		for _, pid := range standbys {
			syscall.Kill(pid, syscall.SIGCONT)
		}
		if l := d.led(led + 1); !slices.Contains(standbys, l.pid) {
			t.Errorf("%+v leads, and the standbys are %v", l, standbys)
		}
		d.start()
		if leader != nil && daemon != nil {
			break
		}
	}
	if leader == nil || daemon == nil {
		t.Skip("no pid could be had a second time")
	}
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	d.listed()
	if r := d.roles()["kv"]; r.LastFailover == nil || r.LastFailover.Reason != role.ReasonCrash || r.LastFailover.FromPID != leader.id.PID {
		t.Errorf("the failover is recorded as %+v", r.LastFailover)
	}
	if n := len(d.leaderships()); n != led+1 {
		t.Errorf("%d leaderships, want %d", n, led+1)
	}
	leader.unharmed(d)
	daemon.unharmed(d)
	d.must("shutdown")
	if code := d.wait(); code != 0 {
		t.Errorf("standbyd ended with %d", code)
	}
	for _, s := range []*stranger{leader, daemon} {
		if v := proc.Judge(s.id); v != proc.Alive {
			t.Errorf("the stranger with pid %d is %v after the stop", s.id.PID, v)
		}
	}
}
