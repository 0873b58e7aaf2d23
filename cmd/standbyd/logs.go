package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"

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
(kv/0), the leader (kv/leader) or the plugins (kv/plugins). Names may have
wildcards, in quotes: 'k*', '*/0'. The files are read directly, rotated and
compressed ones too, so this works after the daemon has died as well.

With several workers, each line has the worker's name, in colour on a terminal.
There, control characters are shown as \xNN. With --since and without -n, all
lines from then on are shown; --grep picks lines before they are counted.`,
		Args: exactArgs("ROLE"),
	}
	follow := c.Flags().BoolP("follow", "f", false, "go on with new lines until Ctrl-C")
	lines := lastLines(c, 100, "last `N` lines to begin with", follow)
	since := c.Flags().String("since", "", "only lines from `TIME` on: how long ago (5m), or a time (15:04, 2006-01-02 15:04:05, RFC 3339)")
	grep := c.Flags().String("grep", "", "only lines that match the regular expression `RE`")
	form := addForm(c, "text", "json")
	return a.verb(c, func(ctx context.Context, args []string) error {
		last, err := lines()
		if err != nil {
			return err
		}
		o := capture.PrintOptions{Lines: last, Follow: *follow, JSON: form.json(), Color: painter(a.stdout).on, Escape: isTerminal(a.stdout)}
		if *since != "" {
			if o.Since, err = parseSince(*since, time.Now()); err != nil {
				return err
			}
			if !c.Flags().Changed("lines") {
				o.Lines = allLines
			}
		}
		if *grep != "" {
			if o.Grep, err = regexp.Compile(*grep); err != nil {
				return usagef("--grep: %v", err)
			}
		}
		sources, err := a.sources(ctx, args[0])
		if err != nil {
			return err
		}
		for i := range sources {
			sources[i].Role = roleOfLog(sources[i].Name)
		}
		err = capture.Print(ctx, a.stdout, sources, o)
		if interrupted(ctx) {
			return nil
		}
		return err
	})
}

// parseSince reads how long ago something was, or when. Without a zone it is
// local time; without a date, today.
func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d.Abs()), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	return time.Time{}, usagef("--since %q: neither how long ago (5m, 2h) nor a time (15:04, 2006-01-02 15:04:05, RFC 3339)", text)
}

// roleOfLog is the role of kv-0 and of kv.plugins.
func roleOfLog(name string) string {
	if role, ok := strings.CutSuffix(name, ".plugins"); ok {
		return role
	}
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		return name[:at]
	}
	return name
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
	if _, err := path.Match(name+which, ""); err != nil || strings.Contains(which, "/") {
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
		if strings.ContainsAny(target, "*?[") {
			if supervisor.MatchLog(target, base) {
				sources = append(sources, capture.Source{Name: base, File: filepath.Join(dir, e.Name())})
			}
			continue
		}
		switch {
		case !one && (ofRole || base == target),
			one && (base == name+"-"+which || base == which && ofRole || which == "plugins" && base == name+".plugins"):
			sources = append(sources, capture.Source{Name: base, File: filepath.Join(dir, e.Name())})
		}
	}
	sort.Slice(sources, func(i, j int) bool { return sources[i].Name < sources[j].Name })
	return sources, nil
}
