package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) restartVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "restart ROLE --rolling",
		Short: "Restart all workers of a role, one by one, without an outage",
		Long: `The standbys are restarted first, one by one: the next one only when the one before
is ready again. Then the leader hands over, and is restarted last. One that does
not get ready ends it, and the others run on as they are.`,
		Args: exactArgs("ROLE"),
	}
	rolling := c.Flags().Bool("rolling", false, "one by one, the leader last, after a switchover")
	f := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		if !*rolling {
			return usagef("say --rolling: only that keeps the role led")
		}
		client, err := a.client()
		if err != nil {
			return err
		}
		done, err := client.RestartRolling(ctx, args[0])
		return a.sayRolled(f, done, err)
	})
}
