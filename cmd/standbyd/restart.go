package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/supervisor"
)

// byHandLimit is how long start, stop and restart wait if -T does not say so.
const byHandLimit = 60 * time.Second

func (a *app) startVerb() *cobra.Command {
	return a.handVerb("start", `start TARGET...`, "Start workers that have no process, and wait until they are ready",
		`A worker that was stopped, waits for its next try or has failed is started at once,
and its count of ends begins anew. Workers that run are left alone.`)
}

func (a *app) stopVerb() *cobra.Command {
	return a.handVerb("stop", `stop TARGET...`, "Stop workers, the leader of a whole role last, and wait until they are gone",
		`They stay stopped until start or restart, or until another standbyd runs. If a
leader alone is stopped, a standby takes over; in a role that is paused or held
none may, so that is refused.`)
}

func (a *app) restartVerb() *cobra.Command {
	c := a.handVerb("restart", `restart TARGET...`, "Restart workers, and wait until they are ready again",
		`All that are meant are stopped and started at once: a whole role has no leader
meanwhile. With --rolling, for roles only, the standbys are restarted one by one,
the next only when the one before is ready again; then the leader hands over, and
is restarted last. One that does not get ready ends it, and the others run on. A
role of one worker has no leader meanwhile; there is a warning.

Where nobody may take over, in a role that is paused or held, a leader is not
restarted: that is refused.`)
	c.Flags().Bool(rollingFlag, false, "one by one, the leader last, after a switchover")
	return c
}

const rollingFlag = "rolling"

// handVerb is one of start, stop and restart.
func (a *app) handVerb(verb, use, short, long string) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: exactOrMore("TARGET"),
		Long: long + `

TARGET is a role (kv), a worker (kv/0, kv-0), the leader (kv/leader), or a pattern
of names ('kv*', 'kv/*').`}
	limit := c.Flags().DurationP("timeout", "T", byHandLimit, "give up waiting after this `time`, with exit code 99; what has begun goes on (0: never)")
	noWait := c.Flags().Bool("no-wait", false, "return when it has begun")
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		if err := checkLimit(*limit); err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		targets, err := expand(ctx, client, args)
		if err != nil {
			return err
		}
		var failed []error
		if rolling, err := c.Flags().GetBool(rollingFlag); err == nil && rolling {
			for _, t := range targets {
				a.warnOfOnlyWorker(ctx, client, t)
				var done supervisor.Rolled
				err := a.narrateOf(ctx, client, f, t, func() (err error) {
					done, err = client.RestartRolling(ctx, t)
					return err
				})
				failed = append(failed, a.sayRolled(f, done, err))
			}
			return errors.Join(failed...)
		}
		all := []supervisor.WorkerStatus{}
		for _, t := range targets {
			workers, err := client.ByHand(ctx, verb, api.HandRequest{Target: t, NoWait: *noWait, LimitMS: limit.Milliseconds()})
			if err != nil {
				failed = append(failed, err)
				continue
			}
			all = append(all, workers...)
			if *noWait && !f.json() {
				fmt.Fprintf(a.stdout, "%s: %s has begun\n", t, verb)
			}
			for _, w := range workers {
				if !f.json() {
					fmt.Fprintf(a.stdout, "%s is %s\n", whom(w.Name, w.PID), w.State)
				}
			}
		}
		if f.json() {
			failed = append(failed, printJSON(a.stdout, all))
		}
		return errors.Join(failed...)
	})
}

// checkLimit judges a -T. What is 0 waits for ever, as does less than the
// millisecond in which the daemon counts, so that is refused.
func checkLimit(d time.Duration) error {
	if d != 0 && d < time.Millisecond {
		return usagef("-T %v: at least 1ms, or 0 for no limit", d)
	}
	return nil
}

// warnOfOnlyWorker tells before a rolling restart that nobody can lead meanwhile.
func (a *app) warnOfOnlyWorker(ctx context.Context, client *api.Client, role string) {
	// One that cannot be had is the restart's to tell.
	if r := roleNow(ctx, client, role); r != nil && len(r.Workers) == 1 && r.Leader != "" && r.Pause == nil {
		fmt.Fprintf(a.stderr, "standbyd: warning: %s has one worker: nobody leads while it is restarted; `standbyd scale %s 2` first, and somebody does\n", role, role)
	}
}

// exactOrMore wants at least one argument.
func exactOrMore(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s is missing", name)
		}
		return nil
	}
}

// expand turns patterns into the roles and workers that they match. What is no
// pattern stays as it is: the daemon says whether it exists.
func expand(ctx context.Context, client *api.Client, args []string) (targets []string, err error) {
	var roles []supervisor.RoleStatus
	for _, arg := range args {
		if !strings.ContainsAny(arg, "*?[") {
			targets = append(targets, arg)
			continue
		}
		if _, err := path.Match(arg, ""); err != nil {
			return nil, usagef("%q is no pattern: %v", arg, err)
		}
		if roles == nil {
			s, err := client.Status(ctx)
			if err != nil {
				return nil, err
			}
			roles = s.Roles
		}
		found := false
		for _, r := range roles {
			if ok, _ := path.Match(arg, r.Name); ok {
				targets, found = append(targets, r.Name), true
				continue // its workers are meant already
			}
			for i, w := range r.Workers {
				byName, _ := path.Match(arg, w.Name)
				byIndex, _ := path.Match(arg, fmt.Sprintf("%s/%d", r.Name, i))
				if byName || byIndex {
					targets, found = append(targets, w.Name), true
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: no role and no worker matches %q", supervisor.ErrNoRole, arg)
		}
	}
	return targets, nil
}
