package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Switchover makes another worker lead: the leader drains while it still
// beats, releases, and the next one leads at once. It returns when the hooks
// know, with the record. To names the worker ("kv-1", "kv/1", "1"); if it is
// empty, the first in the order of candidates follows.
//
// If nobody is ready, or the named worker is not, it is refused and nothing
// has happened: ErrNoStandby with the reasons; ErrNoLeader, ErrBusy. Once the
// leader has been asked there is no way back: if the named worker is lost
// then, another leads, and the error says who. If ctx ends, the change goes on.
func (s *Supervisor) Switchover(ctx context.Context, roleName, to string) (Record, error) {
	return s.changeLeader(ctx, "switchover", roleName, to, func(i int, answer reply[Record]) input { return inSwitchover{i, answer} })
}

// Failover is Switchover by force: the leader's process is killed, whatever it
// is doing. It works also while nobody leads, from a role that is paused or
// held, and instead of a switchover whose drain takes too long.
func (s *Supervisor) Failover(ctx context.Context, roleName, to string) (Record, error) {
	return s.changeLeader(ctx, "failover", roleName, to, func(i int, answer reply[Record]) input { return inFailover{i, answer} })
}

func (s *Supervisor) changeLeader(ctx context.Context, verb, roleName, to string, request func(int, reply[Record]) input) (Record, error) {
	r, i, err := s.candidateOf(roleName, to)
	if err != nil {
		return Record{}, err
	}
	rec, err := ask(ctx, s, r, func(answer reply[Record]) input { return request(i, answer) })
	if err != nil {
		return rec, fmt.Errorf("%s %s: %w", verb, roleName, err)
	}
	return rec, nil
}

// Candidates says whom a switchover would choose now, and why each other
// worker not. Nothing happens.
func (s *Supervisor) Candidates(ctx context.Context, roleName, to string) (Ranking, error) {
	r, i, err := s.candidateOf(roleName, to)
	if err != nil {
		return Ranking{}, err
	}
	return ask(ctx, s, r, func(answer reply[Ranking]) input { return inRank{i, answer} })
}

// candidateOf finds a role and the index of a worker in it, -1 for "".
func (s *Supervisor) candidateOf(roleName, to string) (*roleLoop, int, error) {
	r := s.role(roleName)
	if r == nil {
		return nil, 0, fmt.Errorf("%w: %q (there are: %s)", ErrNoRole, roleName, s.roleNames())
	}
	if to == "" {
		return r, -1, nil
	}
	index := strings.TrimPrefix(strings.TrimPrefix(to, roleName+"/"), roleName+"-")
	return workerOf(r, to, index)
}

// PauseStatus is a pause that an operator has asked for.
type PauseStatus struct {
	Role  string     `json:"role"`
	Since *time.Time `json:"since"` // null if an earlier supervisor was told
	Until *time.Time `json:"until"` // null: until resume
}

// Pause keeps a role, or all of them if roleName is empty, from doing anything
// by itself for that long, or with 0 until Resume: no failover, no preemption,
// no restart of a leader that ended. Switchover and Failover still work. A
// pause of a paused role replaces it. It is in the role's segment and outlives
// this supervisor as long as one of the workers lives. A role whose leader is
// being stopped or restarted is not paused, as nobody would follow: ErrBusy.
// The others are, and the result has them.
func (s *Supervisor) Pause(ctx context.Context, roleName string, length time.Duration) ([]PauseStatus, error) {
	if length < 0 {
		return nil, fmt.Errorf("pause %s: %v is no length of time", roleName, length)
	}
	loops, err := s.named(roleName)
	if err != nil {
		return nil, err
	}
	var all []PauseStatus
	var failed []error
	for _, r := range loops {
		p, err := ask(ctx, s, r, func(answer reply[PauseStatus]) input { return inPause{length, answer} })
		if err != nil {
			failed = append(failed, fmt.Errorf("pause %s: %w", r.config.Name, err))
			continue
		}
		all = append(all, p)
	}
	err = errors.Join(failed...)
	if err != nil && len(all) > 0 {
		var names []string
		for _, p := range all {
			names = append(names, p.Role)
		}
		err = fmt.Errorf("%w; paused are now: %s", err, strings.Join(names, ", "))
	}
	return all, err
}

// Resume ends the pause of a role, or of all if roleName is empty, and says of
// which. One that is not paused is left alone, and is no error.
func (s *Supervisor) Resume(ctx context.Context, roleName string) ([]string, error) {
	loops, err := s.named(roleName)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, r := range loops {
		was, err := ask(ctx, s, r, func(answer reply[bool]) input { return inResume{answer} })
		if err != nil {
			return names, fmt.Errorf("resume %s: %w", r.config.Name, err)
		}
		if was {
			names = append(names, r.config.Name)
		}
	}
	return names, nil
}

// named is one role, or all.
func (s *Supervisor) named(roleName string) ([]*roleLoop, error) {
	if roleName == "" {
		return s.loops(), nil
	}
	if r := s.role(roleName); r != nil {
		return []*roleLoop{r}, nil
	}
	return nil, fmt.Errorf("%w: %q (there are: %s)", ErrNoRole, roleName, s.roleNames())
}
