// Command standbyd keeps process roles alive with hot standbys, and is the
// command line to a running one. See docs/cli.md.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/standbyd/standbyd/supervisor"
)

// version is what `standbyd version` and the status show.
const version = "0.1.0-dev"

func main() {
	supervisor.Stage()
	// Before anything else: a SIGTERM that comes while we start is an orderly stop too.
	spared := signal.Ignored(syscall.SIGHUP) // as nohup does
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx := withSignals(context.Background(), signals)
	if !spared && hasTerminal() {
		ctx = withTerminal(ctx)
	}
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: args[0] is the program's name, the result its exit
// code. It returns when ctx ends or a signal of withSignals says so.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{program: args[0], stdin: stdin, stdout: stdout, stderr: stderr, greeted: make(chan struct{})}
	return a.execute(ctx, args[1:])
}
