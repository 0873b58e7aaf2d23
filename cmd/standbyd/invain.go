package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/standbyd/standbyd/supervisor"
)

// inVain says why a wait for a role would be in vain: what it lacks does not come
// by itself before until (zero: ever), but by a command, which the reason names.
// Empty: it may come. At is the earliest time at which it may come by itself
// after all, zero if never. A role that is stopped with its supervisor may come back
// with the next one.
func inVain(r supervisor.RoleStatus, what string, until time.Time) (why string, at time.Time) {
	after := func(at *time.Time) bool { return !until.IsZero() && at != nil && at.After(until) }
	down := func(w supervisor.WorkerStatus) bool {
		return w.StaysStopped || w.State == supervisor.WorkerFailed && after(w.RetryAt)
	}
	comes := func(t *time.Time) {
		if t != nil && (at.IsZero() || t.Before(at)) {
			at = *t
		}
	}
	if r.Closing {
		return "", at
	}
	if r.Leader == "" {
		switch {
		case r.State == supervisor.RolePaused && r.Pause != nil && (r.Pause.Until == nil || after(r.Pause.Until)):
			comes(r.Pause.Until)
			return lacks(r, "leader").Error(), at
		case r.State == supervisor.RoleHeld && after(r.Budget.HeldUntil):
			comes(r.Budget.HeldUntil)
			return lacks(r, "leader").Error(), at
		}
		var all []string
		for _, w := range r.Workers {
			switch {
			case w.Unseated:
			case !down(w):
				return "", time.Time{}
			case !w.StaysStopped:
				comes(w.RetryAt)
			}
			all = append(all, w.WhyDown())
		}
		if len(all) > 0 {
			if len(all) > 2 {
				all = append(all[:2], fmt.Sprintf("and %d more", len(all)-2))
			}
			return strings.Join(all, "; "), at
		}
		return "", at
	}
	for _, w := range r.Workers {
		if what == "ready" && w.Name != r.Leader && down(w) {
			if !w.StaysStopped {
				comes(w.RetryAt)
			}
			return w.WhyDown(), at
		}
		if what == "ready" && w.Unseated {
			return w.WhyDown(), at
		}
	}
	return "", at
}

// notByItself is the error of a wait in vain. At is when it may come after all,
// beyond the limit of the wait; zero: never.
func notByItself(role, what string, limit time.Duration, at time.Time, why string) error {
	state := "have a leader"
	if what == "ready" {
		state = "be ready"
	}
	when := ""
	if !at.IsZero() {
		when = fmt.Sprintf(" within %v, but at %s at the earliest", limit, at.Local().Format("15:04:05"))
	}
	return fmt.Errorf("%s will not %s by itself%s: %s", role, state, when, why)
}
