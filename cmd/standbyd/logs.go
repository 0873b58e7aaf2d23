package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/internal/capture"
	"github.com/standbyd/standbyd/supervisor"
)

func (a *app) logsVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "logs ROLE[/WORKER]",
		Short: "Show the output of a role's workers and plugins",
		Long: `Show what the workers of a role wrote: all of them and its plugins (kv), one
(kv/0), the leader (kv/leader) or the plugins (kv/plugins). The files are read
directly, so this works after the daemon has died too.`,
		Args: exactArgs("ROLE"),
	}
	follow := c.Flags().BoolP("follow", "f", false, "go on with new lines until Ctrl-C")
	n := c.Flags().IntP("lines", "n", 100, "last `N` lines to begin with")
	return a.verb(c, func(ctx context.Context, args []string) error {
		if *n < 0 {
			return usagef("-n %d: not below 0", *n)
		}
		sources, err := a.sources(ctx, args[0])
		if err != nil {
			return err
		}
		err = capture.Print(ctx, a.stdout, sources, *n, *follow)
		if interrupted(ctx) {
			return nil
		}
		return err
	})
}

// sources asks the daemon; if there is none, it looks into the state folder.
func (a *app) sources(ctx context.Context, target string) ([]capture.Source, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	files, err := client.Logs(ctx, target)
	if errors.Is(err, api.ErrNoDaemon) && a.socket == "" {
		sources, found := a.sourcesOnDisk(target)
		if found != nil || len(sources) == 0 {
			return nil, errors.Join(err, found)
		}
		fmt.Fprintf(a.stderr, "standbyd: %v; these are the logs that it left\n", err)
		return sources, nil
	}
	if err != nil {
		return nil, err
	}
	var sources []capture.Source
	for _, f := range files {
		sources = append(sources, capture.Source{Name: f.Name, File: f.File})
	}
	return sources, nil
}

// sourcesOnDisk finds kv-0.log, kv-1.log and kv.plugins.log by their names.
func (a *app) sourcesOnDisk(target string) ([]capture.Source, error) {
	_, stateDir, err := a.folders()
	if err != nil {
		return nil, err
	}
	name, which, one := strings.Cut(target, "/")
	if strings.ContainsAny(name+which, "/*?[\\") {
		return nil, fmt.Errorf("%w: %q", supervisor.ErrNoRole, target)
	}
	if which == "leader" {
		return nil, errors.New("without a daemon nobody knows who leads; name a worker, such as " + name + "/0")
	}
	dir := filepath.Join(stateDir, "logs")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil // no logs: that there is no daemon is the whole story
	}
	var sources []capture.Source
	for _, e := range entries {
		base, isLog := strings.CutSuffix(e.Name(), ".log")
		if !isLog {
			continue
		}
		index := strings.TrimPrefix(base, name+"-")
		ofRole := base == name+".plugins" || base != index && !strings.Contains(index, "-")
		switch {
		case !one && (ofRole || base == target),
			one && (base == name+"-"+which || base == which && ofRole || which == "plugins" && base == name+".plugins"):
			sources = append(sources, capture.Source{Name: base, File: filepath.Join(dir, e.Name())})
		}
	}
	sort.Slice(sources, func(i, j int) bool { return sources[i].Name < sources[j].Name })
	return sources, nil
}
