package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/supervisor"
)

func (a *app) drillVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "drill ROLE",
		Short: "Cause a failover on purpose, and measure it",
		Long: `Break the leader of a role and measure how fast the next one leads. Time is
counted from just before the fault. With --probe a request is repeated all the
while: from when on it is served again, and how many failed or had to wait.

Faults: kill (SIGKILL); stop (SIGSTOP, found by its missing beats); hang (its
work stops and its process goes on beating, found by progress_timeout); exit (it
ends by itself, with status 70).

A drill is refused while no standby is ready or the role is paused or held, unless
--force. It spends none of the role's failover budget. Ctrl-C ends it after the round under way.`,
		Args: exactArgs("ROLE"),
	}
	d := drilling{app: a}
	fault := c.Flags().String("fault", "kill", "what happens to the leader: kill, stop, hang or exit")
	c.Flags().IntVar(&d.count, "count", 1, "how many times, each against the leader of that moment")
	interval := c.Flags().Duration("interval", time.Second, "wait between two of them")
	force := c.Flags().Bool("force", false, "also while no standby is ready, or none may take over")
	target := c.Flags().String("probe", "", "`URL` to request all the while")
	every := c.Flags().Duration("probe-every", 2*time.Millisecond, "how often")
	c.Flags().Float64Var(&d.maxMS, "max-ms", 0, "exit with code 5 if a round took more than `X` milliseconds: until the first request was served with --probe, else until somebody led")
	d.form = addForm(c, "text", "json")
	c.RegisterFlagCompletionFunc("fault", cobra.FixedCompletions(faultNames(), cobra.ShellCompDirectiveNoFileComp))
	return a.verb(c, func(ctx context.Context, args []string) error {
		d.role, d.fault = args[0], supervisor.Fault(*fault)
		switch {
		case !strings.Contains(" "+strings.Join(faultNames(), " ")+" ", " "+*fault+" "):
			return usagef("--fault %s: there are %s", *fault, strings.Join(faultNames(), ", "))
		case d.count < 1:
			return usagef("--count %d: at least 1", d.count)
		case *interval < 0:
			return usagef("--interval %v: not below 0", *interval)
		case *every < time.Millisecond/10:
			return usagef("--probe-every %v: at least 100us", *every)
		case c.Flags().Changed("max-ms") && d.maxMS <= 0:
			return usagef("--max-ms %v: above 0", d.maxMS)
		}
		if *target != "" {
			if u, err := url.Parse(*target); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return usagef("--probe %s: want a URL such as http://127.0.0.1:8080/status", *target)
			}
			d.probe = newProbe(*target, *every)
		}
		return d.run(ctx, api.DrillRequest{Role: d.role, Fault: d.fault, Count: d.count, IntervalMS: max(interval.Milliseconds(), 1), Force: *force})
	})
}

func faultNames() (names []string) {
	for _, f := range supervisor.Faults {
		names = append(names, string(f))
	}
	return names
}

// drilling is one run of the verb.
type drilling struct {
	*app
	form  *form
	role  string
	fault supervisor.Fault
	count int
	maxMS float64
	probe *probe // nil without --probe

	hit    *supervisor.DrillHit // of the round under way
	waits  string               // what the next round waits for, if that takes long
	rounds []round
	failed error // of the output
}

// round is a line of the report. Without a probe the fields of its count are
// left out.
type round struct {
	Round int `json:"round"`
	supervisor.Record
	*probeCount
}

// took is what --max-ms is about: microseconds, nil if nobody could tell.
func (r *round) took() *float64 {
	if r.probeCount != nil {
		return r.ServedUS
	}
	return r.ActiveUS
}

func (d *drilling) run(ctx context.Context, request api.DrillRequest) error {
	client, err := d.client()
	if err != nil {
		return err
	}
	if d.probe != nil {
		if err := d.probe.once(ctx); err != nil {
			return fmt.Errorf("drill %s: nothing was done to it: the probe is not served as it is: %w", d.role, err)
		}
		defer d.probe.start()()
	}
	if request.Force {
		d.warnOfPause(ctx, client)
	}
	// The request outlives a Ctrl-C until its round is over.
	request.Role = d.role
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	events := make(chan func()) // without room: what was told is done before Drill goes on
	done := make(chan error, 1)
	go func() {
		done <- client.Drill(own, request, api.DrillProgress{
			Hit:    func(h supervisor.DrillHit) { events <- func() { d.begun(h) } },
			Record: func(r supervisor.Record) { events <- func() { d.over(own, r) } },
			Waits:  func(w supervisor.DrillWait) { events <- func() { d.waits = w.For } },
		})
	}()
	show := newProgress(d.stderr)
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	interrupted := ctx.Done()
	stopping := false
	for {
		d.show(show, stopping)
		select {
		case f := <-events:
			show.clear()
			f()
			if stopping && d.hit == nil {
				cancel()
			}
		case <-interrupted:
			interrupted, stopping = nil, true
			if d.hit == nil {
				cancel()
			}
		case <-again.C:
		case err := <-done:
			show.clear()
			if stopping && errors.Is(err, context.Canceled) {
				if err = nil; len(d.rounds) < d.count {
					err = errInterrupted
				}
			}
			return d.conclude(err)
		}
	}
}

// warnOfPause tells before a forced drill what will come of it.
func (d *drilling) warnOfPause(ctx context.Context, client *api.Client) {
	// One that cannot be had is the drill's to tell.
	if r := roleNow(ctx, client, d.role); r != nil && (r.Pause != nil || r.Budget.HeldUntil != nil) {
		fmt.Fprintf(d.stderr, "standbyd: warning: %s; nobody will take over from the leader by itself\n", join(d.role, r.Why))
	}
}

// show says what is waited for.
func (d *drilling) show(p *progress, stopping bool) {
	n := len(d.rounds) + 1
	switch {
	case n > d.count:
	case d.hit != nil && stopping:
		p.line(fmt.Sprintf("round %d of %d: interrupted; waits for the next leader all the same, so that the role is left whole", n, d.count))
	case d.hit != nil:
		p.line(fmt.Sprintf("round %d of %d: %s %s, waits for the next leader", n, d.count, d.hit.Fault, whom(d.hit.Worker, d.hit.PID)))
	case d.waits != "":
		p.line(fmt.Sprintf("round %d of %d: waits for a ready standby: %s", n, d.count, d.waits))
	case n > 1 && p.terminal: // elsewhere the rounds tell enough
		p.line(fmt.Sprintf("round %d of %d: waits for the interval, and for a ready standby", n, d.count))
	}
}

func (d *drilling) begun(h supervisor.DrillHit) { d.hit, d.waits = &h, "" }

// over reports a round.
func (d *drilling) over(ctx context.Context, r supervisor.Record) {
	one := round{Round: len(d.rounds) + 1, Record: r}
	if d.probe != nil && d.hit != nil {
		count := d.probe.count(ctx, d.hit.ZeroMono, r.ActiveUS)
		one.probeCount = &count
	}
	d.hit = nil
	d.rounds = append(d.rounds, one)
	if d.form.json() {
		d.failed = errors.Join(d.failed, printJSON(d.stdout, one))
		return
	}
	line := story(r)
	if one.probeCount != nil {
		line += "  " + one.probeCount.String()
	}
	d.failed = errors.Join(d.failed, writeErr(fmt.Fprintln(d.stdout, line)))
}

// conclude prints the summary and judges by --max-ms.
func (d *drilling) conclude(err error) error {
	if len(d.rounds) > 0 {
		d.failed = errors.Join(d.failed, d.summarize())
	}
	if err != nil || d.failed != nil {
		return errors.Join(err, d.failed)
	}
	if d.maxMS <= 0 {
		return nil
	}
	var slow []string
	for i := range d.rounds {
		r := &d.rounds[i]
		if us := r.took(); us == nil || *us > d.maxMS*1000 {
			slow = append(slow, fmt.Sprintf("round %d (%s)", r.Round, phase(us)))
		}
	}
	if len(slow) == 0 {
		return nil
	}
	return &exitStatus{exitSlow, fmt.Errorf("drill %s: %d of %d rounds took longer than %vms: %s", d.role, len(slow), len(d.rounds), d.maxMS, strings.Join(slow, ", "))}
}

// progress is one line on a terminal that is written over, and a line for each
// news elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	last     string
	since    time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, terminal: isTerminal(w)} }

func (p *progress) line(s string) {
	if s != p.last {
		p.last, p.since = s, time.Now()
		if !p.terminal {
			fmt.Fprintln(p.w, s)
		}
	}
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s (%s)", s, time.Since(p.since).Round(100*time.Millisecond))
	}
}

// clear makes place for what is printed to the same terminal.
func (p *progress) clear() {
	if p.terminal && p.last != "" {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
