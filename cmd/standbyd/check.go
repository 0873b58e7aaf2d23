package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/config"
	"github.com/standbyd/standbyd/internal/wording"
	"github.com/standbyd/standbyd/plugins/host"
	"github.com/standbyd/standbyd/supervisor"
)

func (a *app) checkVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the config file and print the effective config",
		Long: `Check the config file with its parts, config.d/*.toml beside it, and print the
effective config: every key, its value, and in a comment where that comes from:
FILE:LINE, default, or env and the variable. Values of the workers' environment
are not shown. With errors, all of them and no config.`,
		Args: atMost(0),
	}
	plugins := c.Flags().Bool("plugins", false, "also start each plugin and let it judge its own config")
	f := addForm(c, "toml", "json")
	return a.verb(c, func(ctx context.Context, _ []string) error {
		c, file, err := a.load()
		if f.json() {
			return a.checkJSON(ctx, c, file, err, *plugins)
		}
		if err != nil {
			return err
		}
		for _, w := range c.Warnings {
			fmt.Fprintf(a.stderr, "%s (warning)\n", w)
		}
		if *plugins {
			if bad := a.checkPlugins(ctx, c, file); len(bad) > 0 {
				return errConfigOf(bad)
			}
		}
		if err := c.Print(a.stdout); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if n := len(c.Files) - 1; n > 0 {
			file += " with " + wording.Count(n, "file") + " of " + config.PartsFolder
		}
		fmt.Fprintf(a.stderr, "%s is good: %s\n", file, summary(c))
		return nil
	})
}

func summary(c *config.Config) string {
	workers, plugins := 0, 0
	for _, r := range c.Roles {
		workers += r.Workers
		plugins += len(r.Plugins)
	}
	s := fmt.Sprintf("%s, %s, %s", wording.Count(len(c.Roles), "role"), wording.Count(workers, "worker"), wording.Count(plugins, "plugin"))
	if n := len(c.Warnings); n > 0 {
		s += ", " + wording.Count(n, "warning")
	}
	return s
}

// checkJSON prints {"file","files","ok","errors","warnings","config"}; the exit
// code is the same.
func (a *app) checkJSON(ctx context.Context, c *config.Config, file string, err error, plugins bool) error {
	out := struct {
		File     string           `json:"file"`
		Files    []string         `json:"files"`
		OK       bool             `json:"ok"`
		Errors   []config.Problem `json:"errors"`
		Warnings []config.Problem `json:"warnings"`
		// Config is the effective one; none if there are errors.
		Config []config.Setting `json:"config"`
	}{File: file, Files: []string{}, Errors: []config.Problem{}, Warnings: []config.Problem{}, Config: []config.Setting{}}
	var problems config.Problems
	switch {
	case err == nil:
		out.Warnings = append(out.Warnings, c.Warnings...)
		if plugins {
			out.Errors = append(out.Errors, a.checkPlugins(ctx, c, file)...)
		}
	case errors.As(err, &problems):
		out.Errors = append(out.Errors, problems...)
	default:
		out.Errors = append(out.Errors, config.Problem{File: file, Msg: err.Error()})
	}
	if out.OK = len(out.Errors) == 0; out.OK {
		out.Files, out.Config = c.Files, c.Settings()
	}
	if err := printJSON(a.stdout, out); err != nil {
		return err
	}
	if !out.OK {
		return errConfigOf(fmt.Errorf("%s: %s", file, wording.Count(len(out.Errors), "error")))
	}
	return nil
}

// checkPlugins starts each plugin as the daemon would and has it judge its table.
func (a *app) checkPlugins(ctx context.Context, c *config.Config, file string) config.Problems {
	var bad config.Problems
	for _, r := range c.Roles {
		for i, p := range r.Plugins {
			err := host.Check(ctx, hostConfig(c, r, p, hclog.NewNullLogger()))
			if err == nil {
				fmt.Fprintf(a.stderr, "%s: plugin %s of role %s is good\n", file, p.Name, r.Name)
				continue
			}
			// the supervisor's way of saying where: so that the place is found
			field := fmt.Sprintf("plugin[%d].config", i)
			if len(p.Table) == 0 {
				field = fmt.Sprintf("plugin[%d].command", i)
			}
			problem, _ := c.Blame(&supervisor.ConfigError{Role: r.Name, Field: field, Msg: oneLine(err.Error())})
			bad = append(bad, problem)
		}
	}
	return bad
}

// hostConfig is a plugin's config in the words of its launcher.
func hostConfig(c *config.Config, r config.Role, p config.Plugin, log hclog.Logger) host.Config {
	var env []string
	for name, value := range p.Env {
		env = append(env, name+"="+value)
	}
	return host.Config{
		Name: p.Name, Command: p.Command, Dir: filepath.Dir(c.File), SHA256: p.SHA256, Table: p.Table,
		Env: env, Timeout: max(r.HookTimeout, time.Millisecond), Logger: log,
		AutoMTLS: p.AutoMTLS,
	}
}

// load reads the config file that was named, or the first of the usual ones.
// The name is returned as the user would write it.
func (a *app) load() (*config.Config, string, error) {
	file := a.configFile
	if file == "" {
		found, err := config.Find()
		if err != nil {
			return nil, strings.Join(config.Candidates, ", "), errConfigOf(err)
		}
		file = found
	}
	c, err := config.Load(file)
	if err != nil {
		return nil, file, errConfigOf(err)
	}
	return c, file, nil
}
