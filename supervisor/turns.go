package supervisor

import (
	"runtime"
	"sync"
	"time"
)

// turns limits how many workers start at the same time, over all roles. A start
// is dear: a stage is executed, then the program, and then it makes itself
// ready. A thousand that begin together get none of it done in the time in
// which a few after the other all would, and miss every deadline meanwhile.
//
// Whoever has a turn keeps it until the program runs, and then for afterStart
// times as long as that took, so that what it does first counts too: on a
// machine with nothing else to do this is some dozen milliseconds, on a busy
// one so much longer as everything is slower there.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []request // by index, then in the order in which they asked
}

type request struct {
	r     *roleLoop
	index int
}

const (
	startsPerProcessor = 3
	afterStart         = 3
	longestAfterStart  = time.Second
)

// startsAtOnce leaves nobody waiting in a config of a few workers.
func startsAtOnce() int { return max(8, startsPerProcessor*runtime.GOMAXPROCS(0)) }

func newTurns(n int) *turns { return &turns{free: n} }

// ask reports whether the worker may start now. If not, its role is told when
// it may: a role's first worker before any role's second.
func (q *turns) ask(r *roleLoop, index int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free > 0 {
		q.free--
		return true
	}
	at := len(q.waiting)
	for at > 0 && q.waiting[at-1].index > index {
		at--
	}
	q.waiting = append(q.waiting, request{})
	copy(q.waiting[at+1:], q.waiting[at:])
	q.waiting[at] = request{r, index}
	return false
}

// end hands a turn on.
func (q *turns) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.free++
		return
	}
	next := q.waiting[0]
	q.waiting = q.waiting[1:]
	go func() {
		if !next.r.tell(inTurn{next.index}) {
			q.end() // the role has stopped
		}
	}()
}

// endAfter is end for a program that runs after a start that took so long.
func (q *turns) endAfter(start time.Duration) {
	time.AfterFunc(min(afterStart*start, longestAfterStart), q.end)
}
