package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/supervisor"
)

func (a *app) pidVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "pid TARGET",
		Short: "Print the pid of ROLE/leader, ROLE/INDEX or ROLE-INDEX",
		Args:  exactArgs("TARGET"),
	}
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		p, err := client.PID(ctx, args[0])
		if err != nil {
			return err
		}
		if f.json() {
			return printJSON(a.stdout, p)
		}
		return writeErr(fmt.Fprintln(a.stdout, p.PID))
	})
}

func (a *app) signalVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "signal TARGET SIGNAL",
		Short: "Send a signal to a worker, by name (TERM, SIGTERM) or number",
		Args:  exactArgs("TARGET", "SIGNAL"),
	}
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		if _, err := api.ParseSignal(args[1]); err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		sent, err := client.Signal(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		if f.json() {
			return printJSON(a.stdout, sent)
		}
		return writeErr(fmt.Fprintf(a.stdout, "sent %s to %s\n", cmp.Or(sent.Signal, args[1]), whom(sent.Worker, sent.PID)))
	})
}

func (a *app) ackVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "ack ROLE",
		Short: "Let a role that is held after too many failovers go on",
		Args:  exactArgs("ROLE"),
	}
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		if err := client.Ack(ctx, args[0]); err != nil {
			return err
		}
		if f.json() {
			return printJSON(a.stdout, map[string]string{"role": args[0], "done": "ack"})
		}
		return writeErr(fmt.Fprintf(a.stdout, "%s is not held any more\n", args[0]))
	})
}

const (
	waitAgain  = 50 * time.Millisecond // until a daemon that is not there yet is looked for again
	waitAnyhow = time.Second           // a look without an event
	// lastLookLimit is how much longer than asked for a wait may take, to say
	// how things are.
	lastLookLimit = 500 * time.Millisecond
	goneWithin    = 10 * time.Second // for the process to end after it said that all is stopped
	goneLookGap   = 5 * time.Millisecond
)

func (a *app) waitVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "wait ROLE",
		Short: "Wait until a role has a leader; also for the daemon itself",
		Args:  exactArgs("ROLE"),
	}
	what := c.Flags().String("for", "leader", "leader: somebody leads; ready: and every other worker is a ready standby")
	limit := c.Flags().DurationP("timeout", "T", 0, "give up after this time with exit code 99 (0: never)")
	f := addForm(c, "text", "json")
	c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"leader", "ready"}, cobra.ShellCompDirectiveNoFileComp))
	return a.verb(c, func(ctx context.Context, args []string) error {
		if *what != "leader" && *what != "ready" {
			return usagef("--for %s: there are leader and ready", *what)
		}
		if err := checkLimit(*limit); err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		outer := ctx
		if *limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *limit)
			defer cancel()
		}
		found, last := a.await(ctx, client, args[0], *what, *limit)
		if found == nil && ctx.Err() != nil && outer.Err() == nil {
			// The last look may be of long ago.
			if r := a.lastLook(outer, client, args[0]); r != nil {
				if last = lacks(*r, *what); last == nil {
					found = r
				}
			}
		}
		switch {
		case found != nil && f.json():
			return printJSON(a.stdout, found)
		case found != nil:
			return writeErr(fmt.Fprintf(a.stdout, "%s leads %s, token %s\n", whom(found.Leader, found.LeaderPID), found.Name, found.Token))
		case interrupted(ctx):
			return errInterrupted
		case ctx.Err() != nil:
			return fmt.Errorf("%w after %v waiting for %s of %s: %w", errTimedOut, *limit, *what, args[0], last)
		}
		return last
	})
}

// await returns the role once it is as wanted. Otherwise the error is why it
// was not when last seen; it is final if ctx has not ended. The wait ends after
// limit, unless that is zero.
func (a *app) await(ctx context.Context, client *api.Client, name, what string, limit time.Duration) (*supervisor.RoleStatus, error) {
	var until time.Time
	if limit > 0 {
		until = time.Now().Add(limit)
	}
	seen := fmt.Errorf("nobody has answered on %s yet", client.Socket())
	for {
		changes, cancel := context.WithCancel(ctx)
		changed := make(chan struct{}, 1)
		go func() {
			defer cancel()
			client.Events(changes, api.EventsOptions{Follow: true}, func(supervisor.Event) error {
				select {
				case changed <- struct{}{}:
				default:
				}
				return nil
			})
		}()
		last := error(nil)
		for last == nil || changes.Err() == nil {
			s, err := client.StatusOf(ctx, name)
			if err != nil && ctx.Err() != nil {
				// The end of the time is no news of the role.
				last = seen
				break
			}
			if err != nil {
				last, seen = err, err
				if !errors.Is(err, api.ErrNoDaemon) && !errors.Is(err, api.ErrNoAnswer) {
					cancel()
					return nil, err
				}
				break
			}
			r := s.Roles[0]
			if last = lacks(r, what); last == nil {
				cancel()
				return &r, nil
			}
			seen = last
			if why, at := inVain(r, what, until); why != "" {
				cancel()
				return nil, notByItself(name, what, limit, at, why)
			}
			select {
			case <-changed:
			case <-time.After(waitAnyhow):
			case <-changes.Done():
			}
		}
		cancel()
		select {
		case <-ctx.Done():
			return nil, last
		case <-time.After(waitAgain):
		}
	}
}

// lastLook is the role when the time for a wait is over; nil if the daemon does
// not tell at once.
func (a *app) lastLook(ctx context.Context, client *api.Client, name string) *supervisor.RoleStatus {
	ctx, cancel := context.WithTimeout(ctx, lastLookLimit)
	defer cancel()
	return roleNow(ctx, client, name)
}

// lacks says what a role still lacks, nil if nothing.
func lacks(r supervisor.RoleStatus, what string) error {
	if r.Leader == "" {
		return errors.New(join(fmt.Sprintf("it is %s", r.State), strings.TrimPrefix(r.Why, string(r.State)+": ")))
	}
	if what == "ready" {
		for _, w := range r.Workers {
			if w.Name != r.Leader && (!w.Ready || w.State != supervisor.WorkerStandby) {
				if down := w.WhyDown(); down != "" {
					return errors.New(down)
				}
				return errors.New(join(fmt.Sprintf("%s is %s", w.Name, w.State), w.Why))
			}
		}
	}
	return nil
}

func (a *app) shutdownVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "shutdown",
		Short: "Stop the daemon, its workers and plugins, in order",
		Args:  atMost(0),
	}
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, _ []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		var pid int
		var self proc.Identity
		known := false
		err = client.Shutdown(ctx, func(p int) {
			pid = p
			id, err := proc.Of(p)
			self, known = id, err == nil
		})
		if err != nil {
			return err
		}
		if known && !a.gone(ctx, self) {
			return fmt.Errorf("%w: pid %d has stopped everything and is still there after %v", errTimedOut, pid, goneWithin)
		}
		if f.json() {
			return printJSON(a.stdout, api.Stopping{PID: pid, Stopped: true})
		}
		return writeErr(fmt.Fprintf(a.stdout, "standbyd (pid %d) and all that it ran have stopped\n", pid))
	})
}

// gone waits for the end of a process.
func (a *app) gone(ctx context.Context, id proc.Identity) bool {
	limit := time.After(goneWithin)
	for proc.Judge(id) != proc.Gone {
		select {
		case <-ctx.Done():
			return false
		case <-limit:
			return false
		case <-time.After(goneLookGap):
		}
	}
	return true
}

func (a *app) versionVerb() *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Print the version", Args: atMost(0)}
	f := addForm(c, "text", "json")
	return a.verb(c, func(context.Context, []string) error {
		if f.json() {
			return printJSON(a.stdout, map[string]string{"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
		}
		return writeErr(fmt.Fprint(a.stdout, versionLine()))
	})
}

func versionLine() string {
	return fmt.Sprintf("standbyd %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
