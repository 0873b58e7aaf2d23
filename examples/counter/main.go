// Counter is the shortest worker: the leader counts, the next goes on from there.
package main

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := coord.Run(ctx, count); err != nil {
		log.Fatal(err)
	}
}

func count(ctx context.Context, l *coord.Leadership) error {
	claim, err := coord.ClaimOf[uint64](l) // a value in the role's segment
	if err != nil {
		return err
	}
	n, err := claim.Read()
	for ; err == nil && ctx.Err() == nil; n++ {
		if err = claim.Write(n + 1); err == nil { // fails once another leads
			fmt.Println(n + 1)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return err
}
