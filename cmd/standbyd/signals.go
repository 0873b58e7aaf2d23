package main

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

type signalsKey struct{}

// withSignals hands the process's signals to run, so that tests need no
// process to stop a daemon.
func withSignals(ctx context.Context, signals <-chan os.Signal) context.Context {
	return context.WithValue(ctx, signalsKey{}, signals)
}

// signalsOf returns the channel of withSignals, or nil, which never delivers.
func signalsOf(ctx context.Context) <-chan os.Signal {
	signals, _ := ctx.Value(signalsKey{}).(<-chan os.Signal)
	return signals
}

// interruptible returns a context that the first signal ends; the second one
// ends the process at once, for a verb that hangs. Not for the daemon.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := signalsOf(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-ctx.Done():
			return
		}
		if s, ok := (<-signals).(syscall.Signal); ok {
			os.Exit(128 + int(s))
		}
	}()
	return ctx, func() { cancel(nil) }
}
