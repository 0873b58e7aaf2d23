package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/standbyd/standbyd/supervisor"
)

// inVain says why a wait for a role would be in vain: what it lacks does not come
// by itself before until (zero: ever), but by a command, which the reason names.
// Empty: it may come. A role that is stopped with its supervisor may come back
// with the next one.
func inVain(r supervisor.RoleStatus, what string, until time.Time) string {
	after := func(at *time.Time) bool { return !until.IsZero() && at != nil && at.After(until) }
	down := func(w supervisor.WorkerStatus) bool {
		return w.StaysStopped || w.State == supervisor.WorkerFailed && after(w.RetryAt)
	}
	if r.Closing {
		return ""
	}
	if r.Leader == "" {
		switch {
		case r.State == supervisor.RolePaused && r.Pause != nil && (r.Pause.Until == nil || after(r.Pause.Until)),
			r.State == supervisor.RoleHeld && after(r.Budget.HeldUntil):
			return lacks(r, "leader").Error()
		}
		var all []string
		for _, w := range r.Workers {
			if w.Unseated {
				all = append(all, seatless(w))
				continue
			}
			if !down(w) {
				return ""
			}
			all = append(all, whyDown(w))
		}
		if len(all) > 0 {
			if len(all) > 2 {
				all = append(all[:2], fmt.Sprintf("and %d more", len(all)-2))
			}
			return strings.Join(all, "; ")
		}
		return ""
	}
	for _, w := range r.Workers {
		if what == "ready" && w.Name != r.Leader && down(w) {
			return whyDown(w)
		}
		if what == "ready" && w.Unseated {
			return seatless(w)
		}
	}
	return ""
}

// seatless is said of a program that only says that it is ready.
func seatless(w supervisor.WorkerStatus) string {
	return w.Name + " is ready and takes no seat in the segment, so it never leads: does the program use package coord? (docs/worker-contract.md)"
}

func whyDown(w supervisor.WorkerStatus) string {
	text := join(fmt.Sprintf("%s is %s", w.Name, w.State), w.Why)
	if !w.StaysStopped {
		text += fmt.Sprintf("; `standbyd start %s` tries at once", w.Name)
	}
	return text
}

// notByItself is the error of a wait in vain.
func notByItself(role, what string, until time.Time, why string) error {
	state := "have a leader"
	if what == "ready" {
		state = "be ready"
	}
	within := ""
	if !until.IsZero() {
		within = fmt.Sprintf(" before %s", until.Format("15:04:05"))
	}
	return fmt.Errorf("%s will not %s by itself%s: %s", role, state, within, why)
}
