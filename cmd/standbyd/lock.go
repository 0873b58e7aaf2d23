package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/coord/filelease"
)

// lockOptions is what the command line says.
type lockOptions struct {
	key, root string
	ttl, wait time.Duration
	noWait    bool
	command   []string
}

func (a *app) lockVerb() *cobra.Command {
	var o lockOptions
	c := &cobra.Command{
		Use:   "lock KEY [flags] -- CMD [ARG...]",
		Short: "Run a command only while holding a lease",
		Long: `Run CMD only while holding the lease KEY, which one process at a time can have,
and wait for it first. CMD has the lease's token in STANDBYD_TOKEN: a number that
is higher than that of every earlier holder. Signals are passed on to CMD.

When CMD has ended, the rest of its process group is killed, and then the lease
is released. If the lease is lost, or this process is killed, the group is ended
too, before anybody else on this machine can have the lease. So CMD never runs
beside its successor.

Exit codes: CMD's own, or 128 + N if signal N ended it; 75 the lease was lost,
124 waited too long, 125 failed before CMD began, 126 CMD cannot be run, 127
there is no CMD.`,
		Example: `  standbyd lock backup -- /usr/local/bin/backup --all
  standbyd lock backup --no-wait -- sh -c 'echo token $STANDBYD_TOKEN; make'
  standbyd lock deploy --wait 5m --root /srv/locks -- ./deploy`,
		Args: func(c *cobra.Command, args []string) error {
			dash := c.ArgsLenAtDash()
			switch {
			case len(args) == 0 || dash == 0:
				return usagef("KEY is missing")
			case len(args) == 1:
				return usagef("CMD is missing: standbyd lock KEY -- CMD")
			case dash < 0:
				return usagef("put -- before CMD: standbyd lock %s -- %s", shellQuote(args[0]), shellQuote(args[1]))
			case dash == len(args):
				return usagef("CMD is missing after --")
			case dash > 1:
				return usagef("%q is one argument too many before --", args[1])
			}
			o.key, o.command = args[0], args[1:]
			return nil
		},
	}
	c.Flags().StringVar(&o.root, "root", "", "`folder` of the leases, which must exist; the daemon's state folder if not given")
	c.Flags().DurationVar(&o.ttl, "ttl", filelease.DefaultTTL, "how long the lease outlives a holder that other machines cannot see")
	c.Flags().DurationVar(&o.wait, "wait", 0, "wait so long at most; without it, as long as it takes")
	c.Flags().BoolVar(&o.noWait, "no-wait", false, "do not wait at all")
	c.MarkFlagDirname("root")
	// 2 may be CMD's own code: errors in the command line are 125 here, as with env(1).
	args := c.Args
	c.Args = func(c *cobra.Command, list []string) error { return a.ownFailure(args(c, list)) }
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return a.ownFailure(flagError(c, err)) })
	c.RunE = func(c *cobra.Command, _ []string) error {
		a.begun = true
		switch {
		case o.noWait && c.Flags().Changed("wait"):
			return a.ownFailure(usagef("--wait and --no-wait exclude each other"))
		case o.wait < 0 || o.wait == 0 && c.Flags().Changed("wait"):
			return a.ownFailure(usagef("--wait %v: it must be above 0; or use --no-wait", o.wait))
		}
		return a.lock(c.Context(), o)
	}
	return c
}

// ownFailure makes an error one of 125.
func (a *app) ownFailure(err error) error {
	if err == nil {
		return nil
	}
	a.begun = true
	var status *exitStatus
	if errors.As(err, &status) {
		return err
	}
	return &exitStatus{exitOwnFailure, err}
}

// lockRoot is where leases are unless --root says so.
func (a *app) lockRoot(root string) (string, error) {
	if root != "" {
		return root, nil
	}
	_, stateDir, err := a.folders()
	return stateDir, err
}

func (a *app) lock(ctx context.Context, o lockOptions) error {
	path, err := findCommand(o.command[0])
	if err != nil {
		return err
	}
	root, err := a.lockRoot(o.root)
	if err != nil {
		return a.ownFailure(err)
	}
	if o.root != "" {
		err := rootExists(root)
		if errors.Is(err, errNoFolder) {
			err = fmt.Errorf("%w; if the path is right, make it once: mkdir -p -m 700 %s", err, shellQuote(root))
		}
		if err != nil {
			return a.ownFailure(err)
		}
	}
	store, err := filelease.Open(root, filelease.WithTTL(o.ttl))
	if err != nil {
		return a.ownFailure(err)
	}
	signals, stop := lockSignals(signalsOf(ctx))
	defer stop()
	l, err := a.awaitLock(ctx, store, o, signals)
	if err != nil {
		return a.ownFailure(err)
	}
	return a.runLocked(store, l, path, o.command, signals)
}

var errNoFolder = errors.New("there is no such folder")

// rootExists refuses a mistyped --root: in a folder that is made on the way,
// nobody would ever be in the way, and in one that is not there is no lease that
// somebody could look at.
func rootExists(root string) error {
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("use --root %s: %w", root, errNoFolder)
	case err != nil:
		return fmt.Errorf("use --root %s: %w", root, err)
	case !info.IsDir():
		return fmt.Errorf("use --root %s: it is no folder", root)
	}
	return nil
}

// findCommand tells 127 from 126 before anything is waited for.
func findCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || errors.Is(err, exec.ErrDot) {
		if abs, aerr := filepath.Abs(path); aerr == nil {
			path = abs
		}
		return path, nil
	}
	code := exitNotFound
	if errors.Is(err, os.ErrPermission) {
		code = exitCannotRun
	}
	return "", &exitStatus{code, fmt.Errorf("run %s: %w", name, errors.Unwrap(err))}
}

// awaitLock claims, and waits if it may.
func (a *app) awaitLock(ctx context.Context, store *filelease.Store, o lockOptions, signals <-chan os.Signal) (*filelease.Lease, error) {
	who := filelease.Claimant{
		Label: strings.Join(o.command, " "), Version: version, SessionHint: os.Getenv("USER"), Pinned: true,
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		l   *filelease.Lease
		err error
	}
	done := make(chan result, 1)
	// The first look waits, too, while somebody is about to change the lease;
	// who is stopped in that moment would hold it up for good.
	limit := o.wait
	if o.noWait {
		limit = changeLimit
	}
	if limit > 0 {
		defer time.AfterFunc(limit, func() { cancel(errTooLong) }).Stop()
	}
	go func() {
		l, err := store.Claim(ctx, o.key, who)
		var held *filelease.HeldError
		if errors.As(err, &held) && !o.noWait {
			if isTerminal(a.stderr) {
				fmt.Fprintf(a.stderr, "standbyd: %v; waiting\n", held)
			}
			l, err = store.Wait(ctx, o.key, who)
		}
		done <- result{l, err}
	}()
	var r result
	interrupt := 0
	for {
		select {
		case s := <-signals:
			if n, ok := s.(syscall.Signal); ok && interrupt == 0 && (n == syscall.SIGINT || n == syscall.SIGTERM || n == syscall.SIGHUP || n == syscall.SIGQUIT) {
				interrupt = int(n)
				cancel(errInterrupted)
			}
			continue
		case r = <-done:
		}
		break
	}
	var held *filelease.HeldError
	switch {
	case interrupt != 0:
		if r.l != nil {
			store.Release(context.Background(), r.l)
		}
		return nil, &exitStatus{128 + interrupt, errInterrupted}
	case errors.As(r.err, &held):
		return nil, &exitStatus{exitTooLong, held}
	case errors.Is(r.err, errTooLong):
		return nil, &exitStatus{exitTooLong, r.err}
	}
	return r.l, r.err
}

// changeLimit is how long a change of a lease may take before --no-wait does
// not wait for it any more: whoever makes it is stopped, or its disk hangs.
const changeLimit = 5 * time.Second

var errTooLong = errors.New("waited too long")

// startIgnored is what was ignored when the process began, as under nohup:
// CMD must find it so too.
var startIgnored = func() map[os.Signal]bool {
	ignored := make(map[os.Signal]bool)
	for _, s := range forwarded {
		ignored[s] = signal.Ignored(s)
	}
	return ignored
}()

var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// lockSignals takes the signals that are passed on. What came before, between
// the program's start and now, is in earlier.
func lockSignals(earlier <-chan os.Signal) (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 16)
	for _, s := range forwarded {
		if startIgnored[s] {
			signal.Ignore(s)
		} else {
			signal.Notify(signals, s)
		}
	}
	for {
		select {
		case s := <-earlier:
			select {
			case signals <- s:
			default:
			}
			continue
		default:
		}
		return signals, func() { signal.Stop(signals) }
	}
}
