package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// hookMoment is a kind of job of the hook queue.
type hookMoment int

const (
	momentStart hookMoment = iota
	momentPrePromote
	momentPromote
	momentDemote
	momentAnnounce
	momentStop
	momentCount
)

var momentNames = [momentCount]string{"start", "pre-promote", "on-promote", "on-demote", "on-leader-change", "stop"}

func (m hookMoment) String() string { return momentNames[m] }

// hookAbandon is how long after its deadline a call may still return, for
// hooks that first end what they run.
const hookAbandon = time.Second

var (
	errHookStuck   = errors.New("the previous call of this hook has not returned yet")
	errHookPanic   = errors.New("the hook panicked")
	errHookEnded   = errors.New("the leadership has ended")
	errHookAbandon = errors.New("did not return by its deadline and was abandoned")
)

// hookQueue calls the hooks of one role, one call at a time, in the order in
// which jobs are put. Its goroutine ends after the stop job. It decides
// nothing: it tells the role what happened.
type hookQueue struct {
	hooks   []NamedHooks
	envs    []HookEnv
	timeout time.Duration
	clock   func() int64
	tell    func(input)

	// Of the queue's goroutine, per hook.
	stuck []chan struct{}    // closed when an abandoned call returns
	asks  []bool             // has a PrePromote, as it said after Start
	heard []role.Token       // of the last OnPromote that was called, 0 after its OnDemote
	owed  []*role.Transition // an OnDemote that could not be made because the hook was stuck

	mu      sync.Mutex
	jobs    []doJob
	kind    hookMoment              // of the running job
	current context.CancelCauseFunc // cuts it short, nil if nothing runs
	wake    chan struct{}           // capacity 1
}

func newHookQueue(hooks []NamedHooks, envs []HookEnv, timeout time.Duration, clock func() int64, tell func(input)) *hookQueue {
	return &hookQueue{hooks: hooks, envs: envs, timeout: timeout, clock: clock, tell: tell,
		stuck: make([]chan struct{}, len(hooks)), asks: make([]bool, len(hooks)),
		owed: make([]*role.Transition, len(hooks)), heard: make([]role.Token, len(hooks)), wake: make(chan struct{}, 1)}
}

// put appends a job. A demote cuts short what tells of a leadership; a stop
// cuts short whatever runs and drops what waits.
func (q *hookQueue) put(j doJob) {
	q.mu.Lock()
	cut := j.kind == momentDemote && (q.kind == momentPromote || q.kind == momentPrePromote || q.kind == momentAnnounce)
	if j.kind == momentStop {
		q.jobs, cut = nil, true
	}
	if q.current != nil && cut {
		q.current(errHookEnded)
	}
	q.jobs = append(q.jobs, j)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run works until the stop job is through.
func (q *hookQueue) run() {
	for {
		q.mu.Lock()
		if len(q.jobs) == 0 {
			q.mu.Unlock()
			<-q.wake
			continue
		}
		j := q.jobs[0]
		q.jobs = q.jobs[1:]
		ctx, cancel := context.WithCancelCause(context.Background())
		q.kind, q.current = j.kind, cancel
		q.mu.Unlock()
		q.work(ctx, j)
		q.mu.Lock()
		q.current = nil
		q.mu.Unlock()
		cancel(nil)
		if j.kind == momentStop {
			return
		}
	}
}

func (q *hookQueue) work(ctx context.Context, j doJob) {
	done := inJob{kind: j.kind, t: j.t}
	gate := false
	for i := range q.hooks {
		if j.only != nil && !slices.Contains(j.only, i) {
			continue
		}
		hung, called, err := q.call(ctx, i, j)
		if !called {
			continue
		}
		err = printableError(err)
		if j.kind == momentStart {
			p, ok := q.hooks[i].Hooks.(PrePromoter)
			q.asks[i] = ok && p.HasPrePromote()
			gate = gate || q.asks[i]
		}
		q.tell(inCalled{hook: i, moment: j.kind, t: j.t, err: err, hung: hung})
		if err != nil {
			done.failed = append(done.failed, i)
			if done.err == nil {
				done.err = fmt.Errorf("%s of %s: %w", j.kind, q.hooks[i].Name, err)
			}
			if j.kind == momentPrePromote {
				break // one veto is enough
			}
		}
	}
	done.at = q.clock()
	if j.kind == momentStart {
		q.tell(inHooked{gate: gate})
		return
	}
	q.tell(done)
}

// call makes one call, after the OnDemote that the hook may be owed: whatever
// hung, promotions and demotions alternate. hung: it did not return in time.
func (q *hookQueue) call(ctx context.Context, i int, j doJob) (hung, called bool, err error) {
	if j.kind == momentPrePromote && !q.asks[i] {
		return false, false, nil
	}
	if q.stuck[i] != nil {
		select {
		case <-q.stuck[i]:
			q.stuck[i] = nil
		default:
			if j.kind == momentDemote && j.t.Token == q.heard[i] {
				q.owed[i] = &j.t
			}
			return false, true, errHookStuck
		}
	}
	if t := q.owed[i]; t != nil {
		q.owed[i] = nil
		if j.kind != momentDemote || j.t.Token != t.Token {
			if _, hung = q.make(ctx, i, doJob{kind: momentDemote, t: *t}); q.stuck[i] != nil {
				return hung, true, errHookStuck
			}
		}
	}
	err, late := q.make(ctx, i, j)
	return hung || late, true, err
}

// make makes one call with its deadline, and abandons it some time after.
func (q *hookQueue) make(ctx context.Context, i int, j doJob) (err error, hung bool) {
	h := q.hooks[i].Hooks
	pre, _ := h.(PrePromoter)
	switch j.kind {
	case momentPromote:
		q.heard[i] = j.t.Token
	case momentDemote:
		q.heard[i] = 0
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	t := j.t
	t.Deadline, _ = ctx.Deadline()
	result, returned := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(returned)
		defer func() {
			if p := recover(); p != nil {
				result <- fmt.Errorf("%w: %v", errHookPanic, p)
			}
		}()
		result <- callHook(ctx, h, pre, j.kind, t, q.envs, i)
	}()
	select {
	case err := <-result:
		return err, false
	case <-ctx.Done():
	}
	hung = context.Cause(ctx) == context.DeadlineExceeded
	late := time.NewTimer(hookAbandon)
	defer late.Stop()
	select {
	case err := <-result:
		if err == nil && hung {
			err = context.Cause(ctx)
		}
		return err, hung
	case <-late.C:
		q.stuck[i] = returned
		return fmt.Errorf("%w (%w)", errHookAbandon, context.Cause(ctx)), true
	}
}

func callHook(ctx context.Context, h Hooks, pre PrePromoter, kind hookMoment, t role.Transition, envs []HookEnv, i int) error {
	switch kind {
	case momentStart:
		return h.Start(ctx, envs[i])
	case momentPrePromote:
		return pre.PrePromote(ctx, t)
	case momentPromote:
		return h.OnPromote(ctx, t)
	case momentDemote:
		return h.OnDemote(ctx, t)
	case momentAnnounce:
		return h.OnLeaderChange(ctx, t)
	case momentStop:
		return h.Stop(ctx)
	}
	return nil
}
