package main

import (
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/supervisor"
)

// TestWaitInVain: a wait ends at once where only a command helps, and goes on
// where the role heals by itself in time.
func TestWaitInVain(t *testing.T) {
	now := time.Now()
	soon, late := now.Add(2*time.Second), now.Add(time.Minute)
	limit := now.Add(10 * time.Second)
	led := func(w supervisor.WorkerStatus) supervisor.RoleStatus {
		return supervisor.RoleStatus{Name: "kv", State: supervisor.RoleLed, Leader: "kv-0", LeaderPID: 7,
			Workers: []supervisor.WorkerStatus{{Name: "kv-0", PID: 7, State: supervisor.WorkerLeader, Ready: true}, w}}
	}
	unled := func(state supervisor.RoleState, edit func(*supervisor.RoleStatus)) supervisor.RoleStatus {
		r := supervisor.RoleStatus{Name: "kv", State: state, Why: "look", Workers: []supervisor.WorkerStatus{{Name: "kv-0", PID: 8, State: supervisor.WorkerStandby}}}
		if edit != nil {
			edit(&r)
		}
		return r
	}
	stopped := supervisor.WorkerStatus{Name: "kv-1", State: supervisor.WorkerStopped, StaysStopped: true, Why: "was stopped"}
	seatless := supervisor.WorkerStatus{Name: "kv-1", PID: 9, State: supervisor.WorkerStandby, Unseated: true}
	failed := func(at *time.Time) supervisor.WorkerStatus {
		return supervisor.WorkerStatus{Name: "kv-1", State: supervisor.WorkerFailed, RetryAt: at, Why: "ended"}
	}
	paused := func(until *time.Time) func(*supervisor.RoleStatus) {
		return func(r *supervisor.RoleStatus) { r.Pause = &supervisor.PauseStatus{Role: "kv", Until: until} }
	}
	held := func(r *supervisor.RoleStatus) { r.Budget.HeldUntil = &late }
	for name, c := range map[string]struct {
		role  supervisor.RoleStatus
		what  string
		until time.Time
		want  string // empty: it goes on
		at    time.Time
	}{
		"paused":                       {unled(supervisor.RolePaused, paused(nil)), "leader", time.Time{}, "it is paused: look", time.Time{}},
		"paused beyond the limit":      {unled(supervisor.RolePaused, paused(&late)), "leader", limit, "it is paused", late},
		"paused within the limit":      {unled(supervisor.RolePaused, paused(&soon)), "leader", limit, "", time.Time{}},
		"paused for a while, no limit": {unled(supervisor.RolePaused, paused(&late)), "leader", time.Time{}, "", time.Time{}},
		"held beyond the limit":        {unled(supervisor.RoleHeld, held), "ready", limit, "it is held: look", late},
		"held, no limit":               {unled(supervisor.RoleHeld, held), "leader", time.Time{}, "", time.Time{}},
		"vacant":                       {unled(supervisor.RoleVacant, nil), "leader", limit, "", time.Time{}},
		"starting": {unled(supervisor.RoleStarting, func(r *supervisor.RoleStatus) {
			r.Workers[0] = supervisor.WorkerStatus{State: supervisor.WorkerStopped}
		}), "leader", limit, "", time.Time{}},
		"all stopped":                   {unled(supervisor.RoleStopped, func(r *supervisor.RoleStatus) { r.Workers[0] = stopped }), "leader", time.Time{}, "kv-1 was stopped; `standbyd start kv-1` starts it", time.Time{}},
		"all failed":                    {unled(supervisor.RoleStarting, func(r *supervisor.RoleStatus) { r.Workers[0] = failed(&late) }), "leader", limit, "standbyd start kv-1", late},
		"stopped with its supervisor":   {unled(supervisor.RoleStopped, func(r *supervisor.RoleStatus) { r.Workers[0], r.Closing = stopped, true }), "leader", limit, "", time.Time{}},
		"a standby stopped, for ready":  {led(stopped), "ready", time.Time{}, "kv-1 was stopped", time.Time{}},
		"a standby failed":              {led(failed(&late)), "ready", limit, "kv-1 is failed: ended; `standbyd start kv-1`", late},
		"a standby failed, soon tried":  {led(failed(&soon)), "ready", limit, "", time.Time{}},
		"a standby failed, no limit":    {led(failed(&late)), "ready", time.Time{}, "", time.Time{}},
		"a standby without a seat":      {led(seatless), "ready", time.Time{}, "kv-1 is ready and takes no seat", time.Time{}},
		"the same, for a leader":        {led(seatless), "leader", time.Time{}, "", time.Time{}},
		"all without a seat":            {unled(supervisor.RoleStarting, func(r *supervisor.RoleStatus) { r.Workers[0] = seatless }), "leader", limit, "takes no seat", time.Time{}},
		"one of them may come yet":      {unled(supervisor.RoleStarting, func(r *supervisor.RoleStatus) { r.Workers = append(r.Workers, seatless) }), "ready", limit, "", time.Time{}},
		"a place that is about to fill": {led(supervisor.WorkerStatus{Name: "kv-1", State: supervisor.WorkerStopped}), "ready", limit, "", time.Time{}},
	} {
		got, at := inVain(c.role, c.what, c.until)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || !at.Equal(c.at) {
			t.Errorf("%s: %q at %v, want %q at %v", name, got, at, c.want, c.at)
		}
	}
}

// TestNotByItselfNamesTheMoment: the limit of the wait is not the time at which
// it would come.
func TestNotByItselfNamesTheMoment(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	if got := notByItself("kv", "ready", 3*time.Second, at, "look").Error(); got != "kv will not be ready by itself within 3s, but at 12:00:00 at the earliest: look" {
		t.Error(got)
	}
	if got := notByItself("kv", "leader", 3*time.Second, time.Time{}, "look").Error(); got != "kv will not have a leader by itself: look" {
		t.Error(got)
	}
}
