package supervisor

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/standbyd/standbyd/internal/launch"
	"github.com/standbyd/standbyd/internal/proc"
)

// turns limits how many workers start at the same time, over all roles. A start
// is dear: a stage is executed, then the program, and then it makes itself
// ready. A thousand that begin together get none of it done in the time in
// which a few after the other all would, and miss every deadline meanwhile.
//
// Whoever has a turn keeps it until the program runs, and for as long as it
// then wants processors to get ready, longestTurn at most: a program that waits
// for something else is in nobody's way.
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
	longestTurn        = 10 * time.Second
	lookAtStart        = 30 * time.Millisecond
	calmLooks          = 3 // in a row that find none of its threads on a processor, or waiting for one
	afterStart         = 3 // where that cannot be seen: so many times what its start took
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
	q.waiting = slices.Insert(q.waiting, at, request{r, index})
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

// endAfter is end for a program that runs after a start that took so long, in
// the background. up reports whether a worker is ready.
func (q *turns) endAfter(p *launch.Process, start time.Duration, up func(pid int) bool) {
	pid := p.Identity().PID
	if _, seen := proc.Runs(pid); !seen {
		time.AfterFunc(min(afterStart*start, longestTurn), q.end)
		return
	}
	go func() {
		defer q.end()
		look := time.NewTicker(lookAtStart)
		defer look.Stop()
		calm := 0
		for end := time.Now().Add(longestTurn); calm < calmLooks && time.Now().Before(end); {
			select {
			case <-p.Done():
				return
			case <-look.C:
			}
			if up(pid) {
				return
			}
			calm++
			if runs, _ := proc.Runs(pid); runs {
				calm = 0
			}
		}
	}()
}

// isUp reports whether pid is a worker of the role that is ready.
func (r *roleLoop) isUp(pid int) bool {
	for _, w := range r.published.Load().Workers {
		if w.PID == pid {
			return w.up
		}
	}
	return false
}
