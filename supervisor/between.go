package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What a drill of several rounds waits for before the next one.

// DrillWait says what a drill waits for.
type DrillWait struct {
	Role  string `json:"role"`
	Round int    `json:"round"` // the one that is to come, from 1
	For   string `json:"for"`   // who is not ready, and why
}

// drillSilence is how long a drill waits before it says what for, and how long
// it says nothing else then.
const drillSilence = time.Second

// betweenRounds waits out the interval, and then for a leader with a ready
// standby; with an error if none comes.
func (s *Supervisor) betweenRounds(ctx context.Context, r *roleLoop, o DrillOptions, round int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := s.Subscribe(ctx)
	interval := time.NewTimer(o.Interval)
	defer interval.Stop()
	select {
	case <-interval.C:
	case <-r.done:
		return ErrNotRunning
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// Events say when to look again; the slow timer covers what has none.
	again := time.NewTicker(drillSilence)
	defer again.Stop()
	began := time.Now()
	told, toldAt := "", began
	for {
		status := r.published.Load()
		ready, err := drillable(status, o.Force)
		if ready || err != nil {
			return err
		}
		lack, key := lacking(status)
		if since := time.Since(began); since > status.comeback {
			return fmt.Errorf("%w: no standby was ready within %v: %s", ErrTimedOut, status.comeback, lack)
		}
		if key != told && time.Since(toldAt) >= drillSilence {
			told, toldAt = key, time.Now()
			if o.Waits != nil {
				o.Waits(DrillWait{status.Name, round, lack})
			}
		}
		select {
		case <-events:
		case <-again.C:
		case <-r.done:
			return ErrNotRunning
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// comeback is the longest wait for a standby that is being started again: its
// back-off, its start, and what a round takes at most.
func comeback(c *RoleConfig) time.Duration { return c.RestartMaxDelay + drillLimit(c, FaultKill) }

var (
	errHeld   = errors.New("the role is held")
	errPaused = errors.New("the role is paused")
)

// drillable says whether the next round can begin, and with an error that it
// cannot before somebody does something.
func drillable(status *RoleStatus, force bool) (bool, error) {
	if status.State == RoleHeld {
		return false, fmt.Errorf("%w: %s", errHeld, status.Why)
	}
	if status.Pause != nil && (!force || status.State == RolePaused) {
		return false, fmt.Errorf("%w: %s", errPaused, strings.TrimPrefix(status.Why, "paused: "))
	}
	if force && status.State == RoleLed {
		return true, nil
	}
	var down []string
	for _, w := range status.Workers {
		if w.Name == status.Leader {
			continue
		}
		if status.State == RoleLed && w.State == WorkerStandby && w.Ready {
			return true, nil
		}
		if why := w.WhyDown(); why != "" {
			down = append(down, why)
		}
	}
	others := len(status.Workers)
	if status.Leader != "" {
		others--
	}
	switch {
	case status.Closing || len(down) < others:
		return false, nil
	case others == 0:
		return false, noneComes("the role has one worker; --force does it all the same")
	case status.Leader == "":
		return false, fmt.Errorf("%w, and nobody will by itself: %s", ErrNoLeader, fewOf(down))
	}
	return false, noneComes(fewOf(down))
}

// noneComes is the end of a wait for a standby. It matches ErrNoStandby.
type noneComes string

func (e noneComes) Error() string      { return "no standby will be ready by itself: " + string(e) }
func (noneComes) Is(target error) bool { return target == ErrNoStandby }

// lacking says who is not ready, and why; key is the same for as long as
// nothing of that has changed but a time or a number.
func lacking(status *RoleStatus) (text, key string) {
	if status.Leader == "" {
		text = "the role is " + string(status.State)
		if status.Why != "" {
			text += ": " + status.Why
		}
		return text, string(status.State)
	}
	var each []string
	for _, w := range status.Workers {
		if w.Name != status.Leader {
			each = append(each, stateAndWhy(w))
			key += fmt.Sprintf("%s %s %d,", w.Name, w.State, w.PID)
		}
	}
	return fewOf(each), key
}
