package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
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

type terminalKey struct{}

// withTerminal says that the program was started in a terminal: a SIGHUP is
// then the terminal's end. It is asked at the start, because a terminal that
// is gone is none any more.
func withTerminal(ctx context.Context) context.Context {
	return context.WithValue(ctx, terminalKey{}, true)
}

func startedInTerminal(ctx context.Context) bool { return ctx.Value(terminalKey{}) != nil }

// hasTerminal tells whether this process has a terminal or is in its session.
func hasTerminal() bool {
	if isTerminal(os.Stdin) || isTerminal(os.Stderr) {
		return true
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	tty.Close()
	return true
}

// sameSignal is how long after the first one a signal still counts as the same
// one: timeout(1) and terminals send it to the process and to its group.
const sameSignal = 250 * time.Millisecond

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
		first := time.Now()
		for s := range signals {
			if n, ok := s.(syscall.Signal); ok && time.Since(first) >= sameSignal {
				os.Exit(128 + int(n))
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
