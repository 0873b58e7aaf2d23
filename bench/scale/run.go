package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/supervisor"
)

type options struct {
	standbyd       string
	worker         string
	roles, workers int
	tick, idle     time.Duration
	kills          int
}

const patience = 5 * time.Minute

// lookEvery is how often the status is asked for: each answer has a thousand
// workers in it, and costs what the start is measured by.
const lookEvery = 100 * time.Millisecond

func run(ctx context.Context, o options) error {
	program, err := filepath.Abs(o.standbyd)
	if err != nil {
		return err
	}
	if o.worker, err = filepath.Abs(o.worker); err != nil {
		return err
	}
	for _, needed := range []string{program, o.worker} {
		if _, err := os.Stat(needed); err != nil {
			return fmt.Errorf("a program to measure is missing: %w; `make bench-scale` builds it", err)
		}
	}
	fmt.Printf("%d roles of %d workers, tick %v, on %d processors, %s\n\n", o.roles, o.workers, o.tick, runtime.NumCPU(), kernel())
	alone, err := aloneFailover(ctx, program, o)
	if err != nil {
		return fmt.Errorf("a role alone: %w", err)
	}
	return among(ctx, program, o, alone)
}

// aloneFailover is the median takeover of a role that nothing runs beside.
func aloneFailover(ctx context.Context, program string, o options) (float64, error) {
	one := o
	one.roles = 1
	d, err := begin(ctx, program, one)
	if err != nil {
		return 0, err
	}
	defer d.kill()
	if err := d.whole(ctx); err != nil {
		return 0, err
	}
	us, err := d.failovers(ctx, 0, o.kills)
	if err != nil {
		return 0, err
	}
	_, err = d.stop(ctx)
	return us, err
}

func among(ctx context.Context, program string, o options, alone float64) error {
	began := time.Now()
	d, err := begin(ctx, program, o)
	if err != nil {
		return err
	}
	defer d.kill()
	if err := d.led(ctx); err != nil {
		return err
	}
	say("every role is led after", "%v", "", round(time.Since(began)))
	if err := d.whole(ctx); err != nil {
		return err
	}
	say("every worker is ready after", "%v", "", round(time.Since(began)))

	before, err := usageOf(d.pid())
	if err != nil {
		return err
	}
	if err := pause(ctx, o.idle); err != nil {
		return err
	}
	after, err := usageOf(d.pid())
	if err != nil {
		return err
	}
	say("standbyd's CPU while nothing happens", "%.2f %% of a core", "under 2 %", 100*(after.cpu-before.cpu).Seconds()/o.idle.Seconds())
	say("standbyd's memory", "%.1f MiB", "under 100 MiB", float64(after.resident)/(1<<20))
	say("its threads, open files", "%d, %d", "", after.threads, after.files)

	var times []float64
	for range 9 {
		t := time.Now()
		out, err := exec.CommandContext(ctx, program, "-c", d.config, "status").CombinedOutput()
		if err != nil {
			return fmt.Errorf("status: %w: %s", err, out)
		}
		times = append(times, float64(time.Since(t).Microseconds())/1000)
	}
	say("`standbyd status`, median of 9", "%.0f ms", "under 100 ms", median(times))

	us, err := d.failovers(ctx, o.roles/2, o.kills)
	if err != nil {
		return err
	}
	say(fmt.Sprintf("failover of one role, median of %d", o.kills), "%.0f us", "", us)
	say("the same of a role alone", "%.0f us", "", alone)
	say("ratio", "%.2f", "within 2", us/alone)
	took, err := d.stop(ctx)
	if err != nil {
		return err
	}
	say("the stop in order", "%v", "", round(took))
	return nil
}

func say(what, format, goal string, values ...any) {
	if goal != "" {
		goal = "(goal: " + goal + ")"
	}
	fmt.Printf("%-40s %18s  %s\n", what, fmt.Sprintf(format, values...), goal)
}

// daemon is one standbyd with its config in a folder of its own.
type daemon struct {
	cmd    *exec.Cmd
	dir    string
	config string
	client *api.Client
	o      options
	ended  chan error
}

func begin(ctx context.Context, program string, o options) (*daemon, error) {
	dir, err := os.MkdirTemp("", "scale") // short: sockets live below it
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[supervisor]\nruntime_dir = %q\nstate_dir = %q\nlog_level = \"error\"\n", filepath.Join(dir, "run"), filepath.Join(dir, "state"))
	for i := range o.roles {
		fmt.Fprintf(&b, "\n[role.%s]\ncommand = [%q]\nworkers = %d\ntick = %q\nfailovers = 1000\nrestart_max_delay = \"1s\"\nburst = 1000\n",
			roleName(i), o.worker, o.workers, o.tick)
	}
	d := &daemon{dir: dir, config: filepath.Join(dir, "standbyd.toml"), o: o, ended: make(chan error, 1)}
	if err := os.WriteFile(d.config, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	d.cmd = exec.CommandContext(ctx, program, "run", "-c", d.config)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.client = api.NewClient(filepath.Join(dir, "run", api.SocketName))
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { d.ended <- d.cmd.Wait() }()
	return d, nil
}

func roleName(i int) string { return fmt.Sprintf("r%03d", i) }

func (d *daemon) pid() int { return d.cmd.Process.Pid }

// await asks for the status until it is as wanted.
func (d *daemon) await(ctx context.Context, what string, wanted func(supervisor.Snapshot) (missing string)) error {
	missing := "no answer yet"
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		if s, err := d.client.Status(ctx); err == nil {
			if missing = wanted(s); missing == "" {
				return nil
			}
		}
		select {
		case err := <-d.ended:
			d.ended <- err
			log, _ := os.ReadFile(filepath.Join(d.dir, "log"))
			return fmt.Errorf("standbyd has ended: %w\n%s", err, log)
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s: not within %v: %s", what, patience, missing)
}

func (d *daemon) led(ctx context.Context) error {
	return d.await(ctx, "every role is led", func(s supervisor.Snapshot) string {
		for _, r := range s.Roles {
			if r.State != supervisor.RoleLed {
				return fmt.Sprintf("%s is %s", r.Name, r.State)
			}
		}
		return ""
	})
}

func (d *daemon) whole(ctx context.Context) error {
	return d.await(ctx, "every worker is ready", func(s supervisor.Snapshot) string {
		for _, r := range s.Roles {
			for _, w := range r.Workers {
				if !w.Ready || r.State != supervisor.RoleLed {
					return fmt.Sprintf("%s is %s", w.Name, w.State)
				}
			}
		}
		return ""
	})
}

// failovers kills the leader of role i again and again, and returns the median
// time until the next one was active.
func (d *daemon) failovers(ctx context.Context, i, count int) (float64, error) {
	var active []float64
	err := d.client.Drill(ctx, api.DrillRequest{Role: roleName(i), Fault: "kill", Count: count}, api.DrillProgress{Record: func(r supervisor.Record) {
		if r.ActiveUS != nil {
			active = append(active, *r.ActiveUS)
		}
	}})
	if err != nil {
		return 0, err
	}
	if len(active) == 0 {
		return 0, errors.New("no failover was measured")
	}
	return median(active), d.whole(ctx)
}

// stop stops everything in order and makes sure that nothing is left.
func (d *daemon) stop(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if err := d.client.Shutdown(ctx, func(int) {}); err != nil {
		return 0, err
	}
	select {
	case err := <-d.ended:
		d.ended <- err
		if err != nil {
			return 0, fmt.Errorf("standbyd: %w", err)
		}
	case <-time.After(patience):
		return 0, errors.New("standbyd stays after a shutdown")
	}
	took := time.Since(began)
	if left := processesOf(d.dir); len(left) > 0 {
		return took, fmt.Errorf("%d processes are left after the stop: %v", len(left), left)
	}
	os.RemoveAll(d.dir)
	return took, nil
}

// kill ends what an error has left.
func (d *daemon) kill() {
	if len(d.ended) == 0 {
		d.cmd.Process.Signal(os.Interrupt)
		select {
		case <-d.ended:
		case <-time.After(30 * time.Second):
			d.cmd.Process.Kill()
		}
	}
	os.RemoveAll(d.dir)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
