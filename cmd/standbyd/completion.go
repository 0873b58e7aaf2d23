package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// shells are those for which there is a completion script.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func (a *app) completionVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell: bash, zsh, fish or powershell",
		Long: `Print the script with which a shell completes verbs, flags, roles and workers:

  bash        source <(standbyd completion bash)    (needs the package bash-completion)
  zsh         standbyd completion zsh > "${fpath[1]}/_standbyd"
  fish        standbyd completion fish > ~/.config/fish/completions/standbyd.fish
  powershell  standbyd completion powershell | Out-String | Invoke-Expression

The one for bash holds for one session; in its start-up file, for all.`,
		Args:                  exactArgs("SHELL"),
		ValidArgs:             shells,
		DisableFlagsInUseLine: true,
	}
	plain := c.Flags().Bool("no-descriptions", false, "words alone, without what they mean")
	return a.verb(c, func(_ context.Context, args []string) error {
		root := c.Root()
		switch shell := args[0]; {
		case shell == "bash":
			return root.GenBashCompletionV2(a.stdout, !*plain)
		case shell == "zsh" && *plain:
			return root.GenZshCompletionNoDesc(a.stdout)
		case shell == "zsh":
			return root.GenZshCompletion(a.stdout)
		case shell == "fish":
			return root.GenFishCompletion(a.stdout, !*plain)
		case shell == "powershell" && *plain:
			return root.GenPowerShellCompletion(a.stdout)
		case shell == "powershell":
			return root.GenPowerShellCompletionWithDesc(a.stdout)
		}
		return usagef("completion %s: there are %s", args[0], strings.Join(shells, ", "))
	})
}

// helpVerb says of a verb that does not exist that it does not.
func (a *app) helpVerb() *cobra.Command {
	c := &cobra.Command{Use: "help [VERB]", Short: "Show how a verb is used"}
	c.RunE = func(_ *cobra.Command, args []string) error {
		verb, rest, err := c.Root().Find(args)
		switch {
		case err != nil, verb == c.Root() && len(rest) > 0:
			return c.Root().Args(c.Root(), args)
		case len(rest) > 0:
			return usagef("%q is one argument too many", rest[0])
		}
		return verb.Help()
	}
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, verb := range c.Root().Commands() {
			if verb.IsAvailableCommand() {
				names = append(names, verb.Name()+"\t"+verb.Short)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return c
}
