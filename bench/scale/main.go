// Command scale shows what many roles cost: it starts them under the real
// standbyd, measures start, idling, status, one role's failover beside the same
// failover of a role that is alone, and the stop in order, and prints the
// figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord"
)

func main() {
	if os.Getenv("STANDBYD_ROLE") != "" {
		os.Exit(worker())
	}
	var o options
	flag.StringVar(&o.standbyd, "standbyd", "bin/standbyd", "the `program` to measure")
	flag.IntVar(&o.roles, "roles", 100, "roles")
	flag.IntVar(&o.workers, "workers", 10, "workers of each role")
	flag.DurationVar(&o.tick, "tick", 100*time.Millisecond, "tick of each role")
	flag.DurationVar(&o.idle, "idle", 20*time.Second, "how long to watch it idle")
	flag.IntVar(&o.kills, "kills", 20, "failovers to measure, of a role alone and of one among all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// worker stands by, or leads, and does nothing.
func worker() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := coord.Run(ctx, func(ctx context.Context, _ *coord.Leadership) error {
		<-ctx.Done()
		return nil
	})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
