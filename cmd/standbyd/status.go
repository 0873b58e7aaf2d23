package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/supervisor"
)

// watchEvery is how often `status --watch` looks without being told to.
const watchEvery = time.Second

func (a *app) statusVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "status [ROLE[/WORKER]]",
		Short: "Show roles, workers and plugins, or one worker with its last deaths",
		Args:  atMost(1),
	}
	watch := c.Flags().BoolP("watch", "w", false, "show it again after every change, until Ctrl-C")
	f := addForm(c, "table", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		role, worker := "", false
		if len(args) == 1 {
			role, _, worker = strings.Cut(args[0], "/")
		}
		show := func() error {
			if worker {
				return a.workerStatus(ctx, client, args[0], f)
			}
			if f.json() {
				snapshot, err := client.StatusOf(ctx, role)
				if err != nil {
					return err
				}
				return printJSON(a.stdout, snapshot)
			}
			table, err := client.StatusTable(ctx, role, painter(a.stdout).on)
			if err != nil {
				return err
			}
			if *watch && isTerminal(a.stdout) {
				fmt.Fprint(a.stdout, "\x1b[H\x1b[2J")
			} else if *watch {
				fmt.Fprintf(a.stdout, "--- %s\n", time.Now().Format(timeLayout))
			}
			return writeErr(a.stdout.Write(table))
		}
		if !*watch {
			return show()
		}
		return watchChanges(ctx, client, show)
	})
}

// watchChanges calls show at first, after every event and now and then.
func watchChanges(ctx context.Context, client *api.Client, show func() error) error {
	if err := show(); err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		ended <- client.Events(ctx, api.EventsOptions{Follow: true}, func(supervisor.Event) error {
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-changed:
		case <-tick.C:
		}
		if err := show(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// roleNow is a role as it is; nil if it cannot be had now.
func roleNow(ctx context.Context, client *api.Client, name string) *supervisor.RoleStatus {
	s, err := client.StatusOf(ctx, name)
	if err != nil {
		return nil
	}
	return &s.Roles[0]
}

// writeErr is an output that cannot be written to any more.
func writeErr(_ int, err error) error {
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (a *app) historyVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "history [ROLE]",
		Short: "List changes of leader with their measured times, oldest first",
		Args:  atMost(1),
	}
	lines := lastLines(c, 0, "only the last `N`", nil)
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		last, err := lines()
		if err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		name := ""
		if len(args) == 1 {
			name = args[0]
		}
		records, err := client.History(ctx, name)
		if errors.Is(err, api.ErrNoDaemon) && a.socket == "" {
			records, err = a.historyOnDisk(name, err)
		} else if err == nil {
			if s, serr := client.Status(ctx); serr == nil && s.Supervisor.DamagedHistory > 0 {
				a.tellDamage(s.Supervisor.DamagedHistory)
			}
		}
		if err != nil {
			return err
		}
		if last > 0 && last < len(records) {
			records = records[len(records)-last:]
		}
		for _, r := range records {
			if err := a.printRecord(a.stdout, f, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// historyOnDisk is the history that a daemon has left, if there is one.
func (a *app) historyOnDisk(name string, absent error) ([]supervisor.Record, error) {
	_, stateDir, err := a.folders()
	if err != nil {
		return nil, errors.Join(absent, err)
	}
	records, damaged, err := supervisor.ReadHistory(stateDir, name)
	if damaged > 0 {
		a.tellDamage(int64(damaged))
	}
	if err != nil || len(records) == 0 {
		return nil, errors.Join(absent, err)
	}
	fmt.Fprintf(a.stderr, "standbyd: %v; this is the history that it left\n", absent)
	return records, nil
}

func (a *app) tellDamage(lines int64) {
	fmt.Fprintf(a.stderr, "standbyd: damaged lines of the history that are left out: %d; they are kept in STATE_DIR/history.jsonl*\n", lines)
}

func (a *app) printRecord(w io.Writer, f *form, r supervisor.Record) error {
	if f.json() {
		return printJSON(w, r)
	}
	return writeErr(fmt.Fprintln(w, story(r)))
}

func (a *app) eventsVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "events",
		Short: "List what happened, oldest first; with -f also what happens",
		Args:  atMost(0),
	}
	follow := c.Flags().BoolP("follow", "f", false, "go on with new ones until Ctrl-C")
	lines := lastLines(c, 0, "only the last `N` past ones; without it all that are remembered, and 10 with -f", follow)
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, _ []string) error {
		last, err := lines()
		if err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		o := api.EventsOptions{Last: last, Follow: *follow}
		if *follow && !c.Flags().Changed("lines") {
			o.Last = 10
		}
		p := painter(a.stdout)
		return client.Events(ctx, o, func(e supervisor.Event) error {
			if f.json() {
				return printJSON(a.stdout, e)
			}
			if e.Dropped > 0 {
				fmt.Fprintf(a.stdout, "... %d events were lost here: this reader was too slow\n", e.Dropped)
			}
			return writeErr(fmt.Fprintln(a.stdout, eventLine(e, p)))
		})
	})
}

// eventLine is "2026-11-30 12:00:01.123  kv  worker-ready  kv-0 (pid 41) is ready".
func eventLine(e supervisor.Event, p paint) string {
	colour := ""
	switch {
	case e.Error != "", e.Type == supervisor.EventWorkerFailed, e.Type == supervisor.EventLeaderLost:
		colour = red
	case e.Type == supervisor.EventWarning, e.Type == supervisor.EventWorkerBackoff:
		colour = yellow
	case e.Type == supervisor.EventLeaderActive, e.Type == supervisor.EventFailover:
		colour = green
	}
	return fmt.Sprintf("%s  %-8s  %-18s  %s", p.as(faint, e.At.Local().Format(timeLayout+".000")), cmp.Or(e.Role, "-"), e.Type, p.as(colour, sentence(e)))
}

// interrupted tells whether the user ended a verb that has no other end.
func interrupted(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), errInterrupted)
}
