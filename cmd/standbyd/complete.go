package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/supervisor"
)

// completeWithin bounds what a shell waits for while somebody types.
const completeWithin = time.Second

// rolesNow are the roles of the daemon that would be talked to; none if there
// is none.
func (a *app) rolesNow(ctx context.Context) []supervisor.RoleStatus {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	client, err := a.client()
	if err != nil {
		return nil
	}
	snapshot, err := client.Status(ctx)
	if err != nil {
		return nil
	}
	return snapshot.Roles
}

// takesRole completes the first argument with the roles; deep ones also with
// their workers, as TARGET.
func (a *app) takesRole(deep bool, c *cobra.Command) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var words []string
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, r := range a.rolesNow(c.Context()) {
			if !deep {
				words = append(words, r.Name+"\t"+string(r.State))
				continue
			}
			words = append(words, r.Name+"/leader\t"+r.Leader)
			for _, w := range r.Workers {
				words = append(words, w.Name+"\t"+string(w.State))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
