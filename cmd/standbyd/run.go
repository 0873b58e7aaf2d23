package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	runpkg "github.com/oklog/run"
	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/internal/config"
	"github.com/standbyd/standbyd/internal/listen"
	"github.com/standbyd/standbyd/plugins/host"
	"github.com/standbyd/standbyd/supervisor"
)

func (a *app) runVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the roles of the config file, in the foreground",
		Long: `Run the roles of the config file until SIGTERM, SIGINT or 'standbyd shutdown':
then leaders drain, plugins are demoted, and everything stops in order. A second
signal kills at once. Workers that an earlier standbyd left running are adopted.`,
		Args: atMost(0),
	}
	take := c.Flags().Bool("take-terminal", false, "become the terminal's foreground group, so that Ctrl-C reaches standbyd alone and not a make or script that started it")
	wait := c.Flags().Bool("wait", false, "if another standbyd runs on these folders, wait for its end and adopt its workers")
	return a.verb(c, func(ctx context.Context, _ []string) error {
		c, file, err := a.load()
		if err != nil {
			return err
		}
		if *take {
			giveBack, err := takeTerminal(a.stdin)
			if err != nil {
				return err
			}
			defer giveBack()
		}
		return a.serve(ctx, c, file, *wait)
	})
}

const (
	// watchdogSlack is what an orderly stop may take beyond its own limits.
	watchdogSlack = 10 * time.Second
	// killPatience is how long a stop at once may take.
	killPatience = 5 * time.Second
)

// serve is the daemon: actors around one supervisor. The first one that ends
// ends the others; the supervisor is always asked to stop in order.
func (a *app) serve(ctx context.Context, c *config.Config, file string, wait bool) error {
	lines := newLogWriter(a.stderr)
	defer lines.Close()
	log := newLogger(c.Daemon, lines, painter(a.stderr))
	warn := func(but error) {
		refused, _ := c.Blame(but)
		for _, w := range c.Warnings {
			if but == nil || w.Key != refused.Key { // that one is told as an error
				log.Warn(w.String())
			}
		}
	}
	settings, err := a.supervisorConfig(c, log)
	if err != nil {
		warn(err)
		return err
	}
	settings.Wait = wait
	lent, err := listen.LentByEnvironment()
	if err != nil {
		return err
	}
	for _, l := range lent {
		settings.Sockets = append(settings.Sockets, supervisor.Socket(l))
	}
	sup, err := supervisor.New(settings)
	warn(err)
	if err != nil {
		return errConfigOf(blamed(c, err))
	}
	// Only now, and not ignored: workers would inherit that. A reader of our
	// output that goes away must not end the daemon.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	var (
		group         runpkg.Group
		stopping      = make(chan struct{})
		stopped       = make(chan struct{}) // the supervisor has stopped
		runCtx, abort = context.WithCancelCause(context.Background())
		begin         = newLatch(func() { close(stopping); abort(nil) })
		failed        error // of the supervisor; others that see it stopped may return first
	)
	defer abort(nil)
	stop := begin.once
	again := &reloader{a: a, sup: sup, file: c.File, daemon: c.Daemon, log: log}

	{ // Signals: the first stops in order, the second at once.
		over := make(chan struct{})
		group.Add(func() error {
			a.obey(ctx, log, stop, sup.Kill, again.hangup, over)
			return nil
		}, func(error) { close(over) })
	}
	{ // Log: events become lines. Ends after the supervisor's last event.
		events := sup.Subscribe(context.Background())
		group.Add(func() error {
			a.tell(events, sup, log, stopping, stopped)
			return nil
		}, func(error) { stop() })
	}
	{ // Supervisor: the roles themselves.
		group.Add(func() error {
			failed = blamed(c, sup.Run(runCtx))
			close(stopped)
			return failed
		}, func(error) { stop() })
	}
	{ // Control socket: opened once the supervisor holds its folders.
		events := sup.Subscribe(runCtx)
		group.Add(func() error {
			err := a.control(events, sup, c, file, log, stop, stopped, metricsOf(runCtx, sup), again)
			if err != nil {
				log.Error("stopping: there is no control socket")
			}
			return err
		}, func(error) { stop() })
	}
	{ // Watchdog: a stop that exceeds every limit is ended.
		go watchdog(stopping, stopped, stopLimit(c), sup, a)
	}
	err = group.Run()
	if failed != nil {
		return failed
	}
	return err
}

// latch runs something once, whoever comes first.
type latch struct{ fire chan func() }

func newLatch(do func()) *latch {
	l := &latch{make(chan func(), 1)}
	l.fire <- do
	return l
}

func (l *latch) once() {
	select {
	case do := <-l.fire:
		do()
	default:
	}
}

// obey reads signals until over is closed.
func (a *app) obey(ctx context.Context, log hclog.Logger, stop, kill, reload func(), over <-chan struct{}) {
	signals := signalsOf(ctx)
	asked := 0
	var first time.Time
	done := ctx.Done()
	for {
		var name string
		select {
		case <-over:
			return
		case <-done:
			name, done = "end of the context", nil
		case s := <-signals:
			if asked == 1 && time.Since(first) < sameSignal {
				continue
			}
			if s == syscall.SIGHUP && !startedInTerminal(ctx) {
				log.Info("SIGHUP: reading the config file again")
				go reload()
				continue
			}
			name = signalName(s)
		}
		asked++
		switch asked {
		case 1:
			first = time.Now()
			log.Info(name + ": stopping in order; once more kills everything at once")
			stop()
		default:
			log.Warn(name + ": killing everything at once")
			stop()
			kill()
		}
	}
}

func signalName(s os.Signal) string {
	switch s {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	}
	return s.String()
}

// begun waits for the supervisor's first event; false if it could not begin.
func begun(events <-chan supervisor.Event, stopped <-chan struct{}) bool {
	for {
		select {
		case e, ok := <-events:
			if ok && e.Type == supervisor.EventSupervisorStarted {
				return true
			}
			if !ok {
				return false
			}
		case <-stopped:
			return false
		}
	}
}

// supervisorConfig adds what only the daemon knows: version and plugins.
func (a *app) supervisorConfig(c *config.Config, log hclog.Logger) (supervisor.Config, error) {
	settings := c.Supervisor()
	settings.Version = version
	// This process is nothing else: it may be what an embedding one may not.
	settings.OwnCgroup, settings.Subreaper = true, true
	for i, r := range c.Roles {
		for j, p := range r.Plugins {
			hooks, err := host.New(hostConfig(c, r, p, log.Named(r.Name)))
			if err != nil {
				return settings, errConfigOf(blamed(c, &supervisor.ConfigError{Role: r.Name, Field: fmt.Sprintf("plugin[%d]", j), Msg: err.Error()}))
			}
			settings.Roles[i].Hooks = append(settings.Roles[i].Hooks, hooks)
		}
	}
	return settings, nil
}

// blamed names file, line and key of a setting that the supervisor refused.
func blamed(c *config.Config, err error) error {
	if err == nil {
		return nil
	}
	if p, ok := c.Blame(err); ok {
		return &settingError{p}
	}
	var running *supervisor.AlreadyRunningError
	if errors.As(err, &running) {
		if running.PID == 0 {
			running.PID = holderOf(running.Folder)
		}
		return fmt.Errorf("%w; stop it first, or give this one folders of its own (supervisor.runtime_dir, supervisor.state_dir)", err)
	}
	return err
}

// holderOf asks the daemon of a runtime folder who it is; 0 if it does not tell.
func holderOf(runtimeDir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s, err := api.NewClient(filepath.Join(runtimeDir, api.SocketName)).Status(ctx)
	if err != nil {
		return 0
	}
	return s.Supervisor.PID
}

// settingError is a setting that the file allows and this machine does not.
type settingError struct{ config.Problem }

func (e *settingError) Error() string { return e.String() }

// stopLimit is how long an orderly stop may take by the config.
func stopLimit(c *config.Config) time.Duration {
	var longest time.Duration
	for _, r := range c.Roles {
		longest = max(longest, r.DrainTimeout+2*r.StopTimeout+time.Duration(len(r.Plugins)+1)*2*r.HookTimeout)
	}
	return longest + watchdogSlack
}

// watchdog ends a stop that hangs, and leaves the reason in the log.
func watchdog(stopping, stopped <-chan struct{}, limit time.Duration, sup *supervisor.Supervisor, a *app) {
	<-stopping
	select {
	case <-stopped:
		return
	case <-time.After(limit):
	}
	fmt.Fprintf(a.stderr, "standbyd: the stop is not over after %v; everything is killed. What runs:\n", limit)
	pprof.Lookup("goroutine").WriteTo(a.stderr, 2)
	sup.Kill()
	select {
	case <-stopped:
	case <-time.After(killPatience):
		os.Exit(exitFailed)
	}
}
