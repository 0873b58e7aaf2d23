package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/internal/config"
	"github.com/standbyd/standbyd/internal/wording"
	"github.com/standbyd/standbyd/supervisor"
)

// reloader reads the daemon's config file again.
type reloader struct {
	a      *app
	sup    *supervisor.Supervisor
	file   string        // absolute
	daemon config.Daemon // as at the start
	log    hclog.Logger
}

func (r *reloader) load() (supervisor.Config, []supervisor.Change, error) {
	c, err := config.Load(r.file)
	if err != nil {
		return supervisor.Config{}, nil, fmt.Errorf("%w, nothing was changed:\n%w", api.ErrConfig, err)
	}
	settings, err := r.a.supervisorConfig(c, r.log)
	if err != nil {
		return supervisor.Config{}, nil, fmt.Errorf("%w, nothing was changed:\n%w", api.ErrConfig, err)
	}
	settings.RuntimeDir, settings.StateDir = r.daemon.RuntimeDir, r.daemon.StateDir
	return settings, daemonChanges(r.daemon, c.Daemon), nil
}

// daemonChanges are differences that only a new standbyd takes over.
func daemonChanges(old, now config.Daemon) (list []supervisor.Change) {
	before, after := reflect.ValueOf(old), reflect.ValueOf(now)
	for i := range before.NumField() {
		key := config.DaemonKey(before.Type().Field(i).Name)
		if key == "" || before.Field(i).Interface() == after.Field(i).Interface() {
			continue
		}
		list = append(list, supervisor.Change{Key: key, Old: fmt.Sprint(before.Field(i)), New: fmt.Sprint(after.Field(i)), Cost: supervisor.CostDaemon})
	}
	return list
}

// Plan says what Reload would do.
func (r *reloader) Plan(context.Context) (supervisor.Reloaded, error) {
	settings, more, err := r.load()
	if err != nil {
		return supervisor.Reloaded{}, err
	}
	plan, err := r.sup.Plan(settings)
	if err != nil {
		return supervisor.Reloaded{}, fmt.Errorf("%w, nothing was changed: %w", api.ErrConfig, err)
	}
	plan.Changes = append(plan.Changes, more...)
	return supervisor.Reloaded{Plan: plan, Roles: []supervisor.RoleReloaded{}}, nil
}

// Reload applies what differs.
func (r *reloader) Reload(ctx context.Context) (supervisor.Reloaded, error) {
	settings, more, err := r.load()
	if err != nil {
		return supervisor.Reloaded{}, err
	}
	done, err := r.sup.Reload(ctx, settings)
	done.Plan.Changes = append(done.Plan.Changes, more...)
	var bad *supervisor.ConfigError
	if errors.As(err, &bad) && len(done.Roles) == 0 {
		err = fmt.Errorf("%w, nothing was changed: %w", api.ErrConfig, err)
	}
	return done, err
}

// hangup reloads on SIGHUP, and says in the log what came of it.
func (r *reloader) hangup() {
	done, err := r.Reload(context.Background())
	var text strings.Builder
	if err == nil || len(done.Roles) > 0 { // else nothing came of it
		printChanges(&text, done.Plan)
	}
	for line := range strings.Lines(text.String()) {
		r.log.Info("reload: " + strings.TrimRight(line, "\n"))
	}
	if err != nil {
		r.log.Error(err.Error())
	}
}

func (a *app) reloadVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "reload",
		Short: "Read the config file again and apply what differs",
		Long: `The daemon reads its config file and changes only what differs. Limits, timers of
restarts and budgets hold at once; workers are added or stopped; a changed command
or environment restarts the workers one by one, the standbys first, then the
leader after a switchover; if one does not get ready, the role goes back to the
settings before. What stands in a role's segment (tick, grace, fence and
the like) restarts the role: nobody leads it meanwhile. 'reload --plan' shows what
would be done and why; 'reload' does just that. A broken file changes nothing.`,
		Args: atMost(0),
	}
	plan := c.Flags().Bool("plan", false, "only show what would be done, and why")
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, _ []string) (err error) {
		// What is wrong with the file is the daemon's answer, and told once.
		a.tellsBroken = true
		defer func() {
			if !errors.Is(err, api.ErrConfig) {
				fmt.Fprint(a.stderr, a.broken)
			}
		}()
		client, err := a.client()
		if err != nil {
			return err
		}
		if f.json() && !*plan {
			done, err := client.Reload(ctx, false)
			if err != nil && len(done.Roles) == 0 {
				return err
			}
			return errors.Join(err, printJSON(a.stdout, done))
		}
		planned, err := client.Reload(ctx, true)
		if err != nil {
			return err
		}
		if f.json() {
			return printJSON(a.stdout, planned.Plan)
		}
		var text strings.Builder
		printChanges(&text, planned.Plan)
		if *plan {
			printPlan(&text, planned.Plan)
			return writeErr(io.WriteString(a.stdout, text.String()))
		}
		// What differs first: what follows may take its time. That nothing does is
		// an answer by itself, and not one of a reload that is refused.
		if len(planned.Plan.Changes) > 0 {
			if err := writeErr(io.WriteString(a.stdout, text.String())); err != nil {
				return err
			}
		}
		return a.reload(ctx, client, planned.Plan)
	})
}

// reload applies what was planned and tells how it goes.
func (a *app) reload(ctx context.Context, client *api.Client, plan supervisor.Plan) error {
	var done supervisor.Reloaded
	concerned := func(e supervisor.Event) bool {
		return slices.ContainsFunc(plan.Roles, func(r supervisor.RolePlan) bool { return r.Role == e.Role })
	}
	err := a.narrate(ctx, client, concerned, func() (err error) {
		done, err = client.Reload(ctx, false)
		return err
	})
	if err != nil && len(done.Roles) == 0 {
		return err
	}
	var text strings.Builder
	if !slices.Equal(plan.Changes, done.Plan.Changes) {
		fmt.Fprintln(&text, "the config has changed meanwhile; what was applied:")
	}
	if len(plan.Changes) == 0 || !slices.Equal(plan.Changes, done.Plan.Changes) {
		printChanges(&text, done.Plan)
	}
	printReloaded(&text, done)
	return errors.Join(err, writeErr(io.WriteString(a.stdout, text.String())))
}

func printChanges(w io.Writer, p supervisor.Plan) {
	if len(p.Changes) == 0 {
		fmt.Fprintln(w, "the config is as it was")
	}
	for _, c := range p.Changes {
		where := "[supervisor]"
		if c.Role != "" {
			where = c.Role
		}
		switch {
		case c.Cost == supervisor.CostStart:
			fmt.Fprintf(w, "%s: is new\n", where)
		case c.Cost == supervisor.CostStop:
			fmt.Fprintf(w, "%s: is no longer in the config\n", where)
		case c.Cost == supervisor.CostDaemon:
			fmt.Fprintf(w, "%s: %s: %s -> %s: left as it is until standbyd itself is restarted (workers go on meanwhile)\n", where, c.Key, quoted(c.Old), quoted(c.New))
		case c.Scaled:
			fmt.Fprintf(w, "%s: %s: %s by scale -> %s by the file\n", where, c.Key, c.Old, c.New)
		default:
			fmt.Fprintf(w, "%s: %s: %s -> %s\n", where, c.Key, quoted(c.Old), quoted(c.New))
		}
	}
}

func quoted(s string) string {
	if s == "" || strings.ContainsAny(s, " \t") {
		return strconv.Quote(s)
	}
	return s
}

func printPlan(w io.Writer, p supervisor.Plan) {
	for _, r := range p.Roles {
		workers := wording.Few(r.Restarted)
		switch r.Cost {
		case supervisor.CostStart:
			fmt.Fprintf(w, "%s would be started\n", r.Role)
		case supervisor.CostStop:
			fmt.Fprintf(w, "%s would be stopped: %s\n", r.Role, workers)
		case supervisor.CostRole:
			fmt.Fprintf(w, "%s would be stopped and started again, nobody leads it meanwhile: %s\n", r.Role, workers)
		case supervisor.CostRoll:
			fmt.Fprintf(w, "%s: one by one, the leader last, after a switchover: %s\n", r.Role, workers)
		case supervisor.CostPlugins:
			fmt.Fprintf(w, "%s: its plugins would be restarted, its workers go on\n", r.Role)
		case supervisor.CostScale:
			if workers == "" {
				fmt.Fprintf(w, "%s would get more workers\n", r.Role)
			} else {
				fmt.Fprintf(w, "%s: would be stopped: %s\n", r.Role, workers)
			}
		default:
			fmt.Fprintf(w, "%s: holds at once, nothing is restarted\n", r.Role)
		}
	}
}

func printReloaded(w io.Writer, done supervisor.Reloaded) {
	for _, r := range done.Roles {
		switch {
		case r.Reverted:
			fmt.Fprintf(w, "%s: undone: %s\n", r.Role, r.Error)
		case r.Error != "":
			fmt.Fprintf(w, "%s: not all was done: %s\n", r.Role, r.Error)
		case r.Cost == supervisor.CostStart:
			fmt.Fprintf(w, "%s is started\n", r.Role)
		case r.Cost == supervisor.CostStop:
			fmt.Fprintf(w, "%s has stopped\n", r.Role)
		default:
			printRolled(w, r.Role, r.Rolled)
		}
	}
}

func printRolled(w io.Writer, role string, r supervisor.Rolled) {
	text := ""
	if len(r.Started) > 0 {
		text += "; started, in this order: " + wording.Few(r.Started)
	}
	if len(r.Stopped) > 0 {
		text += "; stopped: " + wording.Few(r.Stopped)
	}
	if text == "" {
		text = "; no worker was restarted"
	}
	fmt.Fprintf(w, "%s: done%s\n", role, text)
}

func (a *app) scaleVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "scale ROLE N",
		Short: "Run another number of workers, until the next reload or restart of standbyd",
		Long: `Workers are started one by one, or those beyond the number stopped: if the leader
is among them, it hands over first to one that stays. It holds until the next
reload or restart of standbyd, which take the number from the config file.`,
		Args: exactArgs("ROLE", "N"),
	}
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		n, err := countOfWorkers(args[1], args[0])
		if err != nil {
			return err
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		var done supervisor.Rolled
		err = a.narrateOf(ctx, client, f, args[0], func() (err error) {
			done, err = client.Scale(ctx, args[0], n)
			return err
		})
		return a.sayRolled(f, done, err)
	})
}

// sayRolled also tells what was done before something went wrong.
func (a *app) sayRolled(f *form, done supervisor.Rolled, err error) error {
	if done.Role == "" {
		return err
	}
	if f.json() {
		return errors.Join(err, printJSON(a.stdout, done))
	}
	if err == nil || len(done.Started)+len(done.Stopped) > 0 {
		printRolled(a.stdout, done.Role, done)
	}
	return err
}
