// Command worker is what bench/scale runs a thousand of: it stands by, or
// leads, does nothing, and links no more than a worker has to.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/standbyd/standbyd/coord"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := coord.Run(ctx, func(ctx context.Context, _ *coord.Leadership) error {
		<-ctx.Done()
		return nil
	})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
