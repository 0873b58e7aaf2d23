package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What an operator asks of workers: start, stop, restart.

type handVerb int

const (
	handStart handVerb = iota
	handStop
	handRestart
)

// Indexes of inByHand besides a worker's own.
const (
	theLeader  = -1
	allWorkers = -2
)

// byHand does it, or has it begun, for every worker that is meant.
func byHand(t *turn, in input) {
	ask := in.(inByHand)
	s := &t.s
	var meant []int
	switch {
	case ask.index == theLeader && s.led.worker < 0:
		respond(t, ask.reply, nil, ErrNoLeader)
		return
	case ask.index == theLeader:
		meant = []int{s.led.worker}
	case ask.index == allWorkers:
		for i := range s.workers {
			if !s.workers[i].extra {
				meant = append(meant, i)
			}
		}
	case ask.index >= len(s.workers) || s.workers[ask.index].extra:
		respond(t, ask.reply, nil, ErrNoWorker)
		return
	default:
		meant = []int{ask.index}
	}
	if err := t.leaderless(ask, meant); err != nil {
		respond(t, ask.reply, nil, err)
		return
	}
	for _, i := range meant {
		w := &s.workers[i]
		w.halted, w.lastOut = false, false
		switch {
		case ask.verb == handStop && ask.index == allWorkers && t.leads(w):
			w.halted, w.lastOut = true, true // see stopLast
		case ask.verb == handStop:
			w.halted = true
			t.word(i, wStop)
		case ask.verb == handRestart && w.pid != 0:
			w.ends, w.row = nil, 0
			t.word(i, wStop)
			w.wanted = true
		default:
			w.ends, w.row = nil, 0 // whatever it did before is forgotten
			t.word(i, wStart)
		}
	}
	respond(t, ask.reply, meant, nil)
}

// leaderless says why workers are not to be stopped or restarted now: the leader
// is among them, and nobody may follow by itself. A whole role that is
// stopped is meant to have no leader.
func (t *turn) leaderless(ask inByHand, meant []int) error {
	s := &t.s
	if !s.standsStill() || s.led.term == 0 || ask.verb == handStart || ask.verb == handStop && ask.index == allWorkers || !slices.Contains(meant, s.led.worker) {
		return nil
	}
	first := fmt.Sprintf("`standbyd switchover %s` lets another one lead first", s.policy.Name)
	if ask.index == allWorkers {
		first = fmt.Sprintf("`standbyd restart %s --rolling` restarts one by one", s.policy.Name)
	}
	if s.places() == 1 {
		first = "it has no other worker"
	}
	return wouldBeOutage(fmt.Sprintf("%s leads, and %s; %s", s.nameOf(s.led.pid), t.nobodyMay(), first))
}

func refuseByHand(t *turn, in input) { respond(t, in.(inByHand).reply, nil, ErrNotRunning) }

// stopLast stops the leader of a role that is stopped as a whole, when its
// standbys are gone: nobody is to take over for a moment.
func (t *turn) stopLast() {
	for i := range t.s.workers {
		if w := &t.s.workers[i]; w.lastOut && (t.s.processes() <= 1 || w.pid == 0) {
			w.lastOut = false
			t.word(i, wStop)
		}
	}
}

// halted: every worker was stopped by hand, and is.
func (s *state) halted() bool {
	for i := range s.workers {
		if w := &s.workers[i]; !w.extra && (!w.halted || w.pid != 0) {
			return false
		}
	}
	return len(s.workers) > 0
}

// Start starts the workers of a target that have no process ("kv": all of the
// role, "kv/0", "kv-0"), also ones that have failed, whose count of ends begins
// anew. It returns when all of them are ready, with how they are then; with an
// error, at once when one ended again, or when ctx is over. Workers that run
// already are left alone.
func (s *Supervisor) Start(ctx context.Context, target string) ([]WorkerStatus, error) {
	return s.byHand(ctx, "start", handStart, target)
}

// Stop stops the workers of a target, of a whole role the leader last, and
// returns when they are gone. They stay so until Start or Restart, or until
// another supervisor runs. An error says who is still there, and after which
// signal. The leader alone is not stopped where nobody may follow it, in a role
// that is paused or held: ErrNoStandby.
func (s *Supervisor) Stop(ctx context.Context, target string) ([]WorkerStatus, error) {
	return s.byHand(ctx, "stop", handStop, target)
}

// Restart stops the workers of a target, all at once, and starts them again;
// it returns as Start does. With a leader among them it is refused where nobody
// may lead afterwards, in a role that is paused or held: ErrNoStandby.
func (s *Supervisor) Restart(ctx context.Context, target string) ([]WorkerStatus, error) {
	return s.byHand(ctx, "restart", handRestart, target)
}

// Begin has one of "start", "stop" and "restart" begun, and does not wait for
// what comes of it.
func (s *Supervisor) Begin(ctx context.Context, verb, target string) error {
	which, ok := map[string]handVerb{"start": handStart, "stop": handStop, "restart": handRestart}[verb]
	if !ok {
		return fmt.Errorf("%q is none of start, stop, restart", verb)
	}
	_, _, err := s.beginByHand(ctx, verb, which, target)
	return err
}

// beginByHand asks the role, which says whom it means.
func (s *Supervisor) beginByHand(ctx context.Context, name string, verb handVerb, target string) (*roleLoop, []int, error) {
	r, index := s.role(target), allWorkers
	if r == nil {
		var err error
		if r, index, err = s.find(target); err != nil {
			return nil, nil, err
		}
	}
	meant, err := ask(ctx, s, r, func(to reply[[]int]) input { return inByHand{verb, index, to} })
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", name, target, err)
	}
	return r, meant, nil
}

func (s *Supervisor) byHand(ctx context.Context, name string, verb handVerb, target string) ([]WorkerStatus, error) {
	events := s.Subscribe(ctx)
	before := map[string]int{} // pids by worker
	for _, role := range s.Snapshot().Roles {
		for _, w := range role.Workers {
			before[w.Name] = w.PID
		}
	}
	r, meant, err := s.beginByHand(ctx, name, verb, target)
	if err != nil {
		return nil, err
	}
	for {
		var found []WorkerStatus
		var open []string
		role := r.published.Load()
		now := role.Workers
		for _, i := range meant {
			if i >= len(now) {
				continue // the role has fewer workers by now
			}
			w := now[i]
			found = append(found, w)
			done, ended := w.up, w.State == WorkerBackoff || w.State == WorkerFailed || w.State == WorkerStopped
			switch {
			case verb == handStop:
				done, ended = w.PID == 0 && w.State == WorkerStopped, false
			case verb == handRestart && before[w.Name] != 0 && w.PID == before[w.Name]:
				done, ended = false, false
			}
			if ended && role.Closing {
				return found, fmt.Errorf("%s %s: %w", name, target, s.whatEnds(r, ErrNotRunning))
			}
			if ended {
				w.Why = orExit(w)
				return found, fmt.Errorf("%s %s: %s", name, target, stateAndWhy(w))
			}
			if !done {
				open = append(open, unfinished(w))
			}
		}
		if len(open) == 0 {
			return found, nil
		}
		select {
		case <-events:
		case <-time.After(byHandLook):
		case <-r.done:
			return found, fmt.Errorf("%s %s: %w", name, target, s.whatEnds(r, ErrNotRunning))
		case <-ctx.Done():
			return found, fmt.Errorf("%s %s: %w: %s", name, target, context.Cause(ctx), strings.Join(open, "; "))
		}
	}
}

// byHandLook is how often a state is looked at that no event has announced.
const byHandLook = 100 * time.Millisecond

func orExit(w WorkerStatus) string {
	if w.Why == "" && w.LastExit != nil {
		return describeExit(*w.LastExit)
	}
	return w.Why
}

func unfinished(w WorkerStatus) string {
	text := fmt.Sprintf("%s (pid %d) is %s", w.Name, w.PID, w.State)
	if w.LastSignal != "" {
		text += ", the last signal was SIG" + w.LastSignal
	}
	if w.Why != "" {
		text += ": " + w.Why
	}
	return text
}
