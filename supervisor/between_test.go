package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDrillEndsWhereNoStandbyComes: with restart = "never" each round costs a
// worker, and nobody starts it again.
func TestDrillEndsWhereNoStandbyComes(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Restart = RestartNever
	w := start(t, c)
	w.until("the role is full", full)
	records, err := w.sup.Drill(t.Context(), "kv", DrillOptions{Count: 5, Interval: 1}, nil)
	if len(records) != 2 || !errors.Is(err, ErrNoStandby) {
		t.Fatalf("%d rounds, %v", len(records), err)
	}
	for _, r := range records {
		for _, says := range []string{"ended after 2 of 5 rounds", r.From + " is stopped: ended by signal SIGKILL", "`standbyd start " + r.From + "` starts it"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q is not in: %v", says, err)
			}
		}
	}
	// By force the last one is hit as well, and then nobody is left.
	records, err = w.sup.Drill(t.Context(), "kv", DrillOptions{Count: 2, Interval: 1, Force: true}, nil)
	if len(records) != 0 || !errors.Is(err, ErrNoTakeover) || strings.Count(err.Error(), "standbyd start") != 3 {
		t.Errorf("forced: %d rounds, %v", len(records), err)
	}
}

// TestDrillSaysWhatItWaitsFor, and waits on while a standby is to be started.
func TestDrillSaysWhatItWaitsFor(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].RestartDelay, c.Roles[0].RestartMaxDelay = time.Hour, time.Hour
	w := start(t, c)
	w.until("the role is full", full)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []DrillWait
	records, err := w.sup.Drill(ctx, "kv", DrillOptions{Count: 3, Interval: 1, Waits: func(d DrillWait) { told = append(told, d); cancel() }}, nil)
	if len(records) != 2 || !errors.Is(err, context.Canceled) {
		t.Fatalf("%d rounds, %v", len(records), err)
	}
	for _, r := range records {
		if d := told[0]; d.Role != "kv" || d.Round != 3 || !strings.Contains(d.For, r.From+" is backoff: next start in ") {
			t.Errorf("told of %s by %+v", r.From, d)
		}
	}
}

// TestDrillDoesNotWaitForStoppedStandbys for ever: they may go on, or not.
func TestDrillDoesNotWaitForStoppedStandbys(t *testing.T) {
	c := newConfig(t, "good")
	r := &c.Roles[0]
	r.Grace, r.StartTimeout, r.FenceTimeout, r.DrainTimeout = 3, time.Second, time.Second, time.Second
	w := start(t, c)
	w.until("the role is full", full)
	frozen := 0
	records, err := w.sup.Drill(t.Context(), "kv", DrillOptions{Count: 2, Interval: 1}, func(rec Record) {
		now := w.until("all are back", full)
		for _, one := range now.Workers {
			if one.Name != now.Leader && syscall.Kill(one.PID, syscall.SIGSTOP) == nil {
				frozen++
			}
		}
		w.until("they are not ready", func(r RoleStatus) bool {
			for _, one := range r.Workers {
				if one.Name != r.Leader && one.Ready {
					return false
				}
			}
			return true
		})
	})
	if len(records) != 1 || frozen != 2 || !errors.Is(err, ErrTimedOut) || strings.Count(err.Error(), "kill -CONT") != 2 {
		t.Errorf("%d rounds, %d stopped, %v", len(records), frozen, err)
	}
}

// TestNextRoundOfADrill can begin, may come by itself, or does not.
func TestNextRoundOfADrill(t *testing.T) {
	leader := WorkerStatus{Name: "kv-0", State: WorkerLeader, Ready: true}
	stopped := WorkerStatus{Name: "kv-1", State: WorkerStopped, StaysStopped: true, Why: "was stopped"}
	failed := WorkerStatus{Name: "kv-2", State: WorkerFailed, Why: "ended 10 times within 1m0s"}
	apart := WorkerStatus{Name: "kv-1", State: WorkerStandby, Unseated: true}
	starting := WorkerStatus{Name: "kv-2", State: WorkerStarting}
	ready := WorkerStatus{Name: "kv-2", State: WorkerStandby, Ready: true}
	of := func(workers ...WorkerStatus) RoleStatus {
		r := RoleStatus{Name: "kv", State: RoleVacant, Workers: workers}
		if workers[0].State == WorkerLeader {
			r.State, r.Leader = RoleLed, workers[0].Name
		}
		return r
	}
	for name, c := range map[string]struct {
		role  RoleStatus
		force bool
		ready bool
		is    error
		says  []string
	}{
		"a standby is ready":        {of(leader, stopped, ready), false, true, nil, nil},
		"one starts":                {of(leader, stopped, starting), false, false, nil, nil},
		"by force":                  {of(leader, stopped, failed), true, true, nil, nil},
		"none comes":                {of(leader, stopped, failed), false, false, ErrNoStandby, []string{"kv-1 was stopped; `standbyd start kv-1` starts it", "kv-2 is failed: ended 10 times within 1m0s; `standbyd start kv-2` tries at once"}},
		"none takes a seat":         {of(leader, apart), false, false, ErrNoStandby, []string{"package coord"}},
		"there is no other":         {of(leader), false, false, ErrNoStandby, []string{"one worker"}},
		"nobody leads, one starts":  {of(starting, stopped), true, false, nil, nil},
		"nobody leads or will":      {of(stopped, failed), true, false, ErrNoLeader, []string{"standbyd start kv-1", "standbyd start kv-2"}},
		"nobody leads, one may yet": {of(ready), false, false, nil, nil},
	} {
		got, err := drillable(&c.role, c.force)
		if got != c.ready || !errors.Is(err, c.is) || (err == nil) != (c.is == nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		for _, says := range c.says {
			if !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("%s: %q is not in: %v", name, says, err)
			}
		}
	}
}
