package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/standbyd/standbyd/internal/capture"
	"github.com/standbyd/standbyd/internal/wording"
)

// Resolve reads "kv/0", "kv/leader" or "kv-0". pid is 0 with ErrNoProcess if
// the worker has no process. The other errors are ErrNoRole, ErrNoWorker and
// ErrNoLeader, wrapped.
func (s *Supervisor) Resolve(target string) (role, worker string, pid int, err error) {
	r, i, err := s.find(target)
	if err != nil {
		return "", "", 0, err
	}
	status := r.published.Load()
	if i < 0 {
		if status.Leader == "" {
			return r.config.Name, "", 0, fmt.Errorf("%s: %w", target, ErrNoLeader)
		}
		return r.config.Name, status.Leader, status.LeaderPID, nil
	}
	w := &status.Workers[i]
	if w.PID == 0 {
		return r.config.Name, w.Name, 0, fmt.Errorf("%s: %w (it is %s)", w.Name, ErrNoProcess, w.State)
	}
	return r.config.Name, w.Name, w.PID, nil
}

// find takes a target apart; index -1 means the leader.
func (s *Supervisor) find(target string) (*roleLoop, int, error) {
	name, which, slash := strings.Cut(target, "/")
	if r := s.role(name); slash && r != nil {
		if which == "leader" {
			return r, -1, nil
		}
		which = strings.TrimPrefix(which, name+"-")
		return workerOf(r, target, which)
	}
	if slash {
		return nil, 0, fmt.Errorf("%w: %q (there are: %s)", ErrNoRole, name, s.roleNames())
	}
	if at := strings.LastIndexByte(target, '-'); at > 0 {
		if r := s.role(target[:at]); r != nil {
			return workerOf(r, target, target[at+1:])
		}
	}
	if s.role(target) != nil {
		return nil, 0, fmt.Errorf("%w: %q names a role; say %s/0 or %s/leader", ErrNoWorker, target, target, target)
	}
	return nil, 0, fmt.Errorf("%w: %q (there are: %s)", ErrNoRole, target, s.roleNames())
}

func workerOf(r *roleLoop, target, which string) (*roleLoop, int, error) {
	i, err := strconv.Atoi(which)
	if n := len(r.published.Load().Workers); err != nil || i < 0 || i >= n {
		return nil, 0, fmt.Errorf("%w: %q (role %s has %s/0 to %s/%d, and %s/leader)", ErrNoWorker, target,
			r.config.Name, r.config.Name, r.config.Name, n-1, r.config.Name)
	}
	return r, i, nil
}

func (s *Supervisor) roleNames() string {
	var names []string
	for _, r := range s.loops() {
		names = append(names, r.config.Name)
	}
	return wording.Few(names)
}

// Signal sends a signal to the process of one worker, and says to which. It is
// sent to that very process, never to another one that got its pid.
func (s *Supervisor) Signal(ctx context.Context, target string, sig syscall.Signal) (worker string, pid int, err error) {
	r, i, err := s.find(target)
	if err != nil {
		return "", 0, err
	}
	got, err := ask(ctx, s, r, func(to reply[signalled]) input { return inSignal{i, sig, to} })
	if err != nil {
		return got.worker, got.pid, fmt.Errorf("signal %s: %w", target, err)
	}
	return got.worker, got.pid, nil
}

// Ack ends the hold of a role whose failover budget is spent. ErrNotHeld if
// there is none.
func (s *Supervisor) Ack(ctx context.Context, roleName string) error {
	r := s.role(roleName)
	if r == nil {
		return fmt.Errorf("%w: %q (there are: %s)", ErrNoRole, roleName, s.roleNames())
	}
	_, err := ask(ctx, s, r, func(to reply[struct{}]) input { return inAck{to} })
	if err != nil {
		return fmt.Errorf("ack %s: %w", roleName, err)
	}
	return nil
}

// ask sends a request to a role and waits for its answer.
func ask[T any](ctx context.Context, s *Supervisor, r *roleLoop, request func(reply[T]) input) (value T, err error) {
	if !s.isRunning() {
		return value, ErrNotRunning
	}
	defer func() { err = s.whatEnds(r, err) }()
	answers := make(chan answer[T], 1)
	select {
	case r.inbox <- request(answers):
	case <-r.done:
		return value, ErrNotRunning
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-r.done:
		select {
		case a := <-answers:
			return a.value, a.err
		default:
			return value, ErrNotRunning
		}
	case <-ctx.Done():
		return value, context.Cause(ctx)
	}
}

// whatEnds is the reason why a role takes no request any more.
func (s *Supervisor) whatEnds(r *roleLoop, err error) error {
	if err != ErrNotRunning {
		return err
	}
	s.mu.Lock()
	ending := s.ending
	s.mu.Unlock()
	switch {
	case ending:
		return errShutdown
	case r.published.Load().Closing:
		return errDismissed
	}
	return err
}

// LogSources returns the log files of a role ("kv": its workers and plugins),
// of one worker ("kv/0", "kv-0") or of the present leader ("kv/leader"). Names
// may have wildcards, see MatchLog.
func (s *Supervisor) LogSources(target string) ([]capture.Source, error) {
	if strings.ContainsAny(target, "*?[") {
		return s.matchLogs(target)
	}
	if r := s.role(target); r != nil {
		var sources []capture.Source
		for _, w := range r.published.Load().Workers {
			sources = append(sources, capture.Source{Name: w.Name, File: r.paths.log(w.Name)})
		}
		if len(r.published.Load().hooks) > 0 {
			sources = append(sources, capture.Source{Name: r.config.Name + ".plugins", File: r.paths.pluginLog(r.config.Name)})
		}
		return slices.Clip(sources), nil
	}
	if name, ok := strings.CutSuffix(target, "/plugins"); ok {
		if r := s.role(name); r != nil {
			return []capture.Source{{Name: name + ".plugins", File: r.paths.pluginLog(name)}}, nil
		}
	}
	r, i, err := s.find(target)
	if err != nil {
		return nil, err
	}
	status := r.published.Load()
	name := status.Leader
	if i >= 0 {
		name = status.Workers[i].Name
	}
	if name == "" {
		return nil, fmt.Errorf("%s: %w", target, ErrNoLeader)
	}
	return []capture.Source{{Name: name, File: r.paths.log(name)}}, nil
}
