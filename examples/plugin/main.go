// Command hello-plugin is the shortest plugin of standbyd: it says when its
// role leads, and greets once a second for as long as it does.
package main

import (
	"context"
	"log"
	"time"

	"github.com/standbyd/standbyd/plugins"
)

func main() {
	duty := &plugins.Duty{}
	duty.Start = func(ctx context.Context, t plugins.Transition) error {
		log.Printf("%s leads %s with token %s (%s)", t.Worker, t.Role, t.Token, t.Reason)
		for {
			select {
			case <-ctx.Done(): // demoted, or the token is lost
				log.Printf("%s leads no more", t.Worker)
				return nil
			case <-time.After(time.Second):
				if err := duty.Check(); err != nil { // before every side effect
					return err
				}
				log.Print("hello from the leader's side")
			}
		}
	}
	plugins.Serve(duty)
}
