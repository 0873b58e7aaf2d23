package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/supervisor"
)

func (a *app) switchoverVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "switchover ROLE",
		Short: "Let another worker lead, without losing a request",
		Long: `The leader is asked to stop, finishes what it is doing while it still holds the
role, and hands over: the next one leads at once. If no standby is ready, or the
one that is named is not, nothing happens and the reason is told.

A role that is paused or held can be switched over too. Manual changes of leader
do not count against the role's budget of failovers.`,
		Args: exactArgs("ROLE"),
	}
	to := a.toFlag(c)
	dry := c.Flags().Bool("dry-run", false, "only show every worker, and why it would or would not be chosen; exit code 1 if it would be refused")
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		if *dry {
			ranking, err := client.Candidates(ctx, args[0], *to)
			if err != nil {
				return err
			}
			return a.printRanking(f, ranking)
		}
		if err := a.warnOf(ctx, client, args[0], *to); err != nil {
			return err
		}
		began := time.Now()
		record, err := client.Switchover(ctx, api.ChangeRequest{Role: args[0], To: *to})
		if err != nil {
			return err
		}
		return a.printChange(f, record, time.Since(began))
	})
}

func (a *app) failoverVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "failover ROLE",
		Short: "Let another worker lead now, by killing the leader",
		Long: `The leader's process group is killed, whatever it is doing, also when it hangs;
its requests under way fail. It is started again and becomes a standby. Without
a leader, a standby is made to lead: also one that has nofailover, if it is
named, and also in a role that is paused or held. If nobody is ready, nothing
happens and the reason is told.`,
		Args: exactArgs("ROLE"),
	}
	to := a.toFlag(c)
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		began := time.Now()
		record, err := client.Failover(ctx, api.ChangeRequest{Role: args[0], To: *to})
		if err != nil {
			return err
		}
		return a.printChange(f, record, time.Since(began))
	})
}

func (a *app) toFlag(c *cobra.Command) *string {
	to := c.Flags().String("to", "", "the `WORKER` that shall lead: its name or index (default: the first in the order of candidates)")
	c.RegisterFlagCompletionFunc("to", func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, r := range a.rolesNow(c.Context()) {
			for _, w := range r.Workers {
				if len(args) == 1 && args[0] == r.Name && w.Name != r.Leader {
					names = append(names, w.Name+"\t"+string(w.State))
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return to
}

// warnOf tells of what would follow that one may not expect. Whether there can
// be a switchover is decided when it is asked for.
func (a *app) warnOf(ctx context.Context, client *api.Client, role, to string) error {
	ranking, err := client.Candidates(ctx, role, to)
	if err == nil && ranking.Note != "" {
		fmt.Fprintf(a.stderr, "standbyd: warning: %s\n", ranking.Note)
	}
	return err
}

func (a *app) printChange(f *form, r supervisor.Record, took time.Duration) error {
	if f.json() {
		return printJSON(a.stdout, r)
	}
	if r.From == "" && r.FromPID == 0 {
		return writeErr(fmt.Fprintf(a.stdout, "%s leads %s, token %s\n", whom(r.To, r.ToPID), r.Role, r.Token))
	}
	text := fmt.Sprintf("%s leads %s in place of %s, token %s", whom(r.To, r.ToPID), r.Role, whom(r.From, r.FromPID), r.Token)
	if r.ActiveUS != nil {
		text += fmt.Sprintf("; nobody led for %s", phase(r.ActiveUS))
	}
	return writeErr(fmt.Fprintf(a.stdout, "%s; all of it took %v\n", text, took.Round(time.Millisecond)))
}

// printRanking shows the candidates; a refusal is the exit code too.
func (a *app) printRanking(f *form, r supervisor.Ranking) error {
	if f.json() {
		if err := printJSON(a.stdout, r); err != nil {
			return err
		}
	} else if err := rankingTable(a.stdout, r, painter(a.stdout)); err != nil {
		return err
	}
	if r.Refused != "" {
		return &exitStatus{code: exitFailed}
	}
	return nil
}

func rankingTable(w io.Writer, r supervisor.Ranking, p paint) error {
	var b bytes.Buffer
	leader := "nobody leads"
	if r.Leader != "" {
		leader = "led by " + r.Leader
	}
	if r.Refused != "" {
		fmt.Fprintf(&b, "%s  %s; a switchover would be refused: %s\n", p.as(bold, r.Role), leader, p.as(red, r.Refused))
	} else {
		fmt.Fprintf(&b, "%s  %s; a switchover would go to %s\n", p.as(bold, r.Role), leader, p.as(green, r.To))
	}
	if r.Note != "" {
		fmt.Fprintf(&b, "  %s\n", p.as(yellow, r.Note))
	}
	rows := table{head: []string{"WORKER", "STATE", "PID", "PRIORITY", "LAG", "PLACE", "WHY"}}
	for _, c := range r.Workers {
		mark := ""
		if c.Chosen {
			mark = green
		}
		rows.add(cell{c.Worker, mark}, cell{string(c.State), workerColour(c.State)}, cell{number(c.PID), ""}, cell{fmt.Sprint(c.Priority), ""},
			cell{fmt.Sprint(c.Lag), ""}, cell{number(c.Place), ""}, cell{oneLine(c.Why), mark})
	}
	rows.write(&b, p)
	return writeErr(w.Write(b.Bytes()))
}

func (a *app) pauseVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "pause [ROLE]",
		Short: "Keep a role, or all, from changing its leader by itself",
		Long: `No automatic failover, no preemption, no restart of a leader that ended, until
'resume' or for the time that --for says. Standbys are restarted as ever, and
switchover and failover work. The pause is in the role's segment: it holds also
without the daemon, and ends with the role's last worker.`,
		Args: atMost(1),
	}
	length := c.Flags().Duration("for", 0, "end by itself after this `time` (default: at resume)")
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		if *length < 0 || c.Flags().Changed("for") && *length < time.Millisecond {
			return usagef("--for %v: at least 1ms", *length)
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		paused, err := client.Pause(ctx, api.PauseRequest{Role: strings.Join(args, ""), ForMS: length.Milliseconds()})
		for _, p := range paused {
			if f.json() {
				err = printJSON(a.stdout, p)
			} else if p.Until != nil {
				err = writeErr(fmt.Fprintf(a.stdout, "%s is paused until %s\n", p.Role, p.Until.Local().Format(timeLayout)))
			} else {
				err = writeErr(fmt.Fprintf(a.stdout, "%s is paused until resume\n", p.Role))
			}
			if err != nil {
				return err
			}
		}
		return err
	})
}

func (a *app) resumeVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "resume [ROLE]",
		Short: "End the pause of a role, or of all; one that is not paused is left alone",
		Args:  atMost(1),
	}
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		names, err := client.Resume(ctx, strings.Join(args, ""))
		if err != nil {
			return err
		}
		for _, name := range names {
			if f.json() {
				err = printJSON(a.stdout, map[string]string{"role": name, "done": "resume"})
			} else {
				err = writeErr(fmt.Fprintf(a.stdout, "%s is not paused any more\n", name))
			}
			if err != nil {
				return err
			}
		}
		switch {
		case len(names) > 0:
			return nil
		case len(args) == 1 && f.json():
			return printJSON(a.stdout, map[string]string{"role": args[0], "done": "nothing"})
		case len(args) == 1:
			return writeErr(fmt.Fprintf(a.stdout, "%s was not paused: nothing to do\n", args[0]))
		case f.json():
			return nil
		}
		return writeErr(fmt.Fprintln(a.stdout, "no role was paused: nothing to do"))
	})
}
