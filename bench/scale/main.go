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
)

func main() {
	var o options
	flag.StringVar(&o.standbyd, "standbyd", "bin/standbyd", "the `program` to measure")
	flag.StringVar(&o.worker, "worker", "bin/scale-worker", "the `program` that every worker is")
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
