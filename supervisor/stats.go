package supervisor

import (
	"sync/atomic"
	"time"
)

// LatenessBounds are the upper bounds of the buckets of [RoleStats.Late].
var LatenessBounds = [...]time.Duration{
	100 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond,
	100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 10 * time.Second,
}

// RoleStats counts the work of one role's loop since it began.
type RoleStats struct {
	Role  string
	Ticks uint64 // ticks that the loop has served
	// Late says for each of LatenessBounds how many ticks were served no later
	// than that after they were due. A tick beyond the last bound is in Ticks
	// alone.
	Late    [len(LatenessBounds)]uint64
	LateSum time.Duration // of all ticks
	Inputs  uint64        // messages that the loop has decided about
	Busy    time.Duration // time in which the loop was not waiting; against the clock it is the loop's saturation
}

// Stats returns the counters of each role's loop, in the order of the roles.
// Safe for concurrent use; it does not block.
func (s *Supervisor) Stats() []RoleStats {
	stats := []RoleStats{}
	for _, r := range s.loops() {
		stats = append(stats, r.load.read(r.config.Name))
	}
	return stats
}

// load is what a role's loop counts of itself. The loop alone writes it.
type load struct {
	ticks   atomic.Uint64
	late    [len(LatenessBounds)]atomic.Uint64
	lateSum atomic.Int64
	inputs  atomic.Uint64
	busy    atomic.Int64
}

// tick counts one that is served late after it was due.
func (l *load) tick(late time.Duration) {
	late = max(late, 0)
	l.ticks.Add(1)
	l.lateSum.Add(int64(late))
	for i := len(LatenessBounds) - 1; i >= 0 && late <= LatenessBounds[i]; i-- {
		l.late[i].Add(1)
	}
}

func (l *load) read(role string) RoleStats {
	s := RoleStats{Role: role, LateSum: time.Duration(l.lateSum.Load()), Inputs: l.inputs.Load(), Busy: time.Duration(l.busy.Load())}
	for i := range l.late {
		s.Late[i] = l.late[i].Load()
	}
	s.Ticks = l.ticks.Load() // last: no bucket has more than all of them
	return s
}
