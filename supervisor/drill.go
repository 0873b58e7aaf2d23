package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// Fault is what a drill does to a leader. The strings are append-only.
type Fault string

const (
	FaultKill Fault = "kill" // SIGKILL
	FaultStop Fault = "stop" // SIGSTOP: found as a hang of the process
	FaultHang Fault = "hang" // its work stops and its beats go on: found by the role's progress_timeout
	FaultExit Fault = "exit" // it ends by itself, with status 70
)

// Faults are all that a drill can cause. The caller must not change it.
var Faults = []Fault{FaultKill, FaultStop, FaultHang, FaultExit}

// DrillOptions say what a drill does. The zero value kills the leader once.
type DrillOptions struct {
	Fault    Fault         // empty means FaultKill
	Count    int           // rounds; 0 means 1
	Interval time.Duration // between the end of a round and the next; 0 means 1 s
	// Force hits the leader also when no standby is ready to take over, or none may.
	Force bool
	// Hit is told of each fault that was caused, before its record is known;
	// nil is allowed. It is called on the goroutine of the caller of Drill.
	Hit func(DrillHit)
	// Waits is told what is waited for before a round, if that takes longer than
	// a second, and when that changes. As Hit otherwise.
	Waits func(DrillWait)
}

// DrillHit is a fault just caused.
type DrillHit struct {
	Role   string     `json:"role"`
	Fault  Fault      `json:"fault"`
	Worker string     `json:"worker"` // who led
	PID    int        `json:"pid"`
	Term   uint64     `json:"term"`
	Token  role.Token `json:"token"`
	// ZeroMono is the zero of the coming record: CLOCK_MONOTONIC, nanoseconds.
	ZeroMono int64 `json:"zero_mono_ns"`
}

const drillInterval = time.Second

// Drill causes failovers on purpose and measures them: zero is taken just
// before the fault. Each is told of every round's record; nil is allowed. It
// refuses with ErrNoStandby while nobody could take over, also where the role is
// paused or held, unless Force, and with ErrUnwatched if a hang would not be
// noticed. In a role that is paused, also by then, a round ends with
// ErrNoTakeover once its fault would have been found; so it does where all workers
// are down. From the second round on it waits for a ready standby instead, and
// ends where none can come: with ErrNoStandby if all others were stopped or have
// failed, with ErrTimedOut if none got ready in the time that the role's limits
// give one that is started again. The records of the rounds that were done are
// returned also with an error.
//
// A drill spends none of the role's failover budget, and its victim none of
// the restarts that its worker has. If ctx ends in the middle of a round, the
// takeover is still waited for by the role, recorded, and its victim let go;
// only Drill does not wait for it.
func (s *Supervisor) Drill(ctx context.Context, roleName string, o DrillOptions, each func(Record)) ([]Record, error) {
	r := s.role(roleName)
	if r == nil {
		return nil, fmt.Errorf("%w: %q (there are: %s)", ErrNoRole, roleName, s.roleNames())
	}
	if o.Fault == "" {
		o.Fault = FaultKill
	}
	if !slices.Contains(Faults, o.Fault) {
		return nil, fmt.Errorf("drill %s: there is no fault %q: say kill, stop, hang or exit", roleName, o.Fault)
	}
	if o.Count < 0 || o.Interval < 0 {
		return nil, fmt.Errorf("drill %s: %d rounds with %v between them: neither may be below 0", roleName, o.Count, o.Interval)
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
			if err := s.betweenRounds(ctx, r, o, round+1); err != nil {
				return records, fmt.Errorf("drill %s: ended after %d of %d rounds: %w", roleName, round, o.Count, err)
			}
		}
		rec, err := s.drillOnce(ctx, r, o)
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

// drillOnce is one round.
func (s *Supervisor) drillOnce(ctx context.Context, r *roleLoop, o DrillOptions) (Record, error) {
	type result struct {
		rec Record
		err error
	}
	hits, done := make(chan answer[DrillHit], 1), make(chan result, 1)
	go func() {
		rec, err := ask(ctx, s, r, func(to reply[Record]) input { return inDrill{o.Fault, o.Force, hits, to} })
		done <- result{rec, err}
	}()
	tell := func(h answer[DrillHit]) {
		if o.Hit != nil {
			o.Hit(h.value)
		}
	}
	select {
	case h := <-hits:
		tell(h)
		got := <-done
		return got.rec, got.err
	case got := <-done:
		select {
		case h := <-hits: // both were there
			tell(h)
		default:
		}
		return got.rec, got.err
	}
}
