package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DrillOptions say what a drill does. The zero value kills the leader once.
type DrillOptions struct {
	Fault    string        // "kill" (the default) or "stop"
	Count    int           // rounds; 0 means 1
	Interval time.Duration // between the end of a round and the next; 0 means 1 s
	// Force hits the leader also when no standby is ready to take over.
	Force bool
}

const drillInterval = time.Second

// Drill causes failovers on purpose and measures them: zero is taken just
// before the signal. Each is told of every round's record; nil is allowed. It
// refuses with ErrNoStandby while nobody could take over, unless Force. From
// the second round on it waits for a ready standby instead. The records of the
// rounds that were done are returned also with an error.
func (s *Supervisor) Drill(ctx context.Context, roleName string, o DrillOptions, each func(Record)) ([]Record, error) {
	r := s.role(roleName)
	if r == nil {
		return nil, fmt.Errorf("%w: %q (there are: %s)", ErrNoRole, roleName, s.roleNames())
	}
	switch o.Fault {
	case "":
		o.Fault = "kill"
	case "kill", "stop":
	default:
		return nil, fmt.Errorf("drill %s: there is no fault %q: say kill or stop", roleName, o.Fault)
	}
	if o.Count == 0 {
		o.Count = 1
	}
	if o.Interval == 0 {
		o.Interval = drillInterval
	}
	var records []Record
	for round := range o.Count {
		if round > 0 {
			if err := s.betweenRounds(ctx, r, o); err != nil {
				return records, fmt.Errorf("drill %s, before round %d: %w", roleName, round+1, err)
			}
		}
		rec, err := ask(ctx, s, r, func(to reply[Record]) input { return inDrill{o.Fault, o.Force, to} })
		if err != nil {
			return records, fmt.Errorf("drill %s: %w", roleName, err)
		}
		records = append(records, rec)
		if each != nil {
			each(rec)
		}
	}
	return records, nil
}

// betweenRounds waits out the interval, and then for a leader with a ready
// standby.
func (s *Supervisor) betweenRounds(ctx context.Context, r *roleLoop, o DrillOptions) error {
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
	again := time.NewTicker(drillInterval)
	defer again.Stop()
	for {
		ready, err := drillable(r.published.Load(), o.Force)
		if ready || err != nil {
			return err
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

var errHeld = errors.New("the role is held")

func drillable(status *RoleStatus, force bool) (bool, error) {
	if status.State == RoleHeld {
		return false, fmt.Errorf("%w: %s", errHeld, status.Why)
	}
	if status.State != RoleLed {
		return false, nil
	}
	for _, w := range status.Workers {
		if w.State == WorkerStandby && w.Ready {
			return true, nil
		}
	}
	return force, nil
}
