package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/internal/config"
)

// app is one invocation: where it reads and writes, and the global flags.
type app struct {
	program        string // as it was called
	stdin          io.Reader
	stdout, stderr io.Writer
	configFile     string        // -c
	socket         string        // --socket
	begun          bool          // a verb runs: later errors are not about usage
	greeted        chan struct{} // closed when run has greeted
	tellsBroken    bool          // the verb's answer may be what is wrong with the config file
	broken         string        // that, while it has not been told
}

// errConfig: the config file cannot be used; Problems and others wrap it.
var errConfig = errors.New("config")

func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	verb, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	var status *exitStatus
	if errors.As(err, &status) {
		if status.err != nil {
			fmt.Fprintf(a.stderr, "standbyd: %v\n", status.err)
		}
		return status.code
	}
	var usage *usageError
	if !a.begun || errors.As(err, &usage) {
		fmt.Fprintf(a.stderr, "standbyd: %v\n", err)
		fmt.Fprintf(a.stderr, "Run '%s --help' for how it is used.\n", verb.CommandPath())
		return exitUsage
	}
	var problems config.Problems
	var setting *settingError
	switch {
	case errors.As(err, &problems):
		fmt.Fprintln(a.stderr, problems)
	case errors.As(err, &setting):
		fmt.Fprintln(a.stderr, setting)
	default:
		fmt.Fprintf(a.stderr, "standbyd: %v\n", err)
	}
	code := codeOf(err)
	if code == exitNoDaemon {
		if a.configFile == "" && a.socket == "" {
			fmt.Fprintln(a.stderr, "If one runs with other folders, name them with -c FILE or --socket PATH.")
		}
		if a.configFile != "" && a.socket == "" {
			fmt.Fprintln(a.stderr, "If one was started before runtime_dir was changed in the file, name its socket with --socket PATH.")
		}
		fmt.Fprintf(a.stderr, "Start one with: %s\nIt adopts workers that a dead standbyd left running: those go on and fail over by themselves, unless a plugin has a veto.\n", a.runLine())
	}
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "standbyd",
		Short: "Keep process roles alive with hot standbys",
		Long: `standbyd keeps a process role alive by keeping hot standbys of it: one worker
leads, the others are warm, and one of them takes over within a millisecond of
the leader's death.

Start it with 'standbyd run -c FILE'; the other verbs talk to a running one. It is
found by --socket, by -c FILE, by $STANDBYD_SOCKET, by ./standbyd.toml or
/etc/standbyd/standbyd.toml, or in the default runtime folder, in this order.

Exit codes: 0 done, 1 failed, 2 usage or config, 3 no daemon there, 4 no such
role or worker, 5 a drill took longer than --max-ms, 99 timed out.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				return usagef("there is no verb %q; did you mean %s?", args[0], strings.Join(near, " or "))
			}
			return usagef("there is no verb %q", args[0])
		},
		SuggestionsMinimumDistance: 2,
		Run:                        func(cmd *cobra.Command, _ []string) { cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.Version = version
	root.SetVersionTemplate(versionLine())
	root.PersistentFlags().StringVarP(&a.configFile, "config", "c", "", "config `file`")
	root.PersistentFlags().StringVar(&a.socket, "socket", "", "`path` of the control socket")
	root.MarkPersistentFlagFilename("config", "toml")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(a.helpVerb())
	root.AddCommand(
		a.runVerb(), a.checkVerb(),
		a.statusVerb(), a.historyVerb(), a.eventsVerb(), a.logsVerb(),
		a.pidVerb(), a.signalVerb(), a.drillVerb(), a.ackVerb(), a.waitVerb(),
		a.switchoverVerb(), a.failoverVerb(), a.pauseVerb(), a.resumeVerb(),
		a.startVerb(), a.stopVerb(), a.restartVerb(), a.scaleVerb(), a.reloadVerb(),
		a.lockVerb(), a.locksVerb(),
		a.shutdownVerb(), a.inspectVerb(), a.completionVerb(), a.versionVerb(),
	)
	for _, c := range root.Commands() {
		switch c.Name() {
		case "status", "history", "drill", "switchover", "failover", "pause", "resume", "ack", "wait", "scale":
			a.takesRole(false, c)
		case "pid", "signal", "logs", "start", "stop", "restart":
			a.takesRole(true, c)
		}
	}
	return root
}

// verb completes a command: its errors are no usage errors, unless they say so.
func (a *app) verb(c *cobra.Command, do func(ctx context.Context, args []string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		a.begun = true
		ctx := c.Context()
		if c.Name() != "run" { // the daemon reads its signals itself
			debug.SetGCPercent(shortLived)
			var cancel context.CancelFunc
			ctx, cancel = interruptible(ctx)
			defer cancel()
		}
		return do(ctx, args)
	}
	return c
}

// shortLived is the GOGC of a verb: most end before a collection pays.
const shortLived = 800

// exactArgs names what is missing, unlike cobra's own.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usagef("%s is missing", strings.Join(names[len(args):], " "))
		}
		return atMost(len(names))(nil, args)
	}
}

func atMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%q is one argument too many", args[n])
		}
		return nil
	}
}

// client finds the daemon.
func (a *app) client() (*api.Client, error) {
	path, err := a.socketPath()
	if err != nil {
		return nil, err
	}
	return api.NewClient(path), nil
}

func (a *app) socketPath() (string, error) {
	if a.socket != "" {
		return a.socket, nil
	}
	if a.configFile == "" {
		if path := os.Getenv("STANDBYD_SOCKET"); path != "" {
			return path, nil
		}
	}
	runtimeDir, _, err := a.folders()
	var broken config.Problems
	if errors.As(err, &broken) {
		dir, told := config.RuntimeDirOfBroken(broken[0].File)
		if !told {
			return "", errConfigOf(append(broken, config.Problem{File: broken[0].File,
				Msg: "so its runtime_dir is not known; name the daemon's socket with --socket PATH"}))
		}
		if a.broken = fmt.Sprintf("%s (warning)\n", broken[0]); !a.tellsBroken {
			fmt.Fprint(a.stderr, a.broken)
		}
		fmt.Fprintf(a.stderr, "standbyd: the file is broken; looking for the daemon in %s\n", dir)
		runtimeDir, err = dir, nil
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(runtimeDir, api.SocketName), nil
}

// folders are those of the config file, or the default ones if there is none.
func (a *app) folders() (runtimeDir, stateDir string, err error) {
	file := a.configFile
	if file == "" {
		if file, err = config.Find(); err != nil {
			return config.DefaultRuntimeDir(), config.DefaultStateDir(), nil
		}
	}
	runtimeDir, stateDir, err = config.FoldersOf(file)
	if err != nil {
		return "", "", errConfigOf(err)
	}
	return runtimeDir, stateDir, nil
}

// errConfigOf marks an error as one of the config: exit code 2.
func errConfigOf(err error) error {
	if err == nil {
		return nil
	}
	return &configError{err}
}

type configError struct{ err error }

func (e *configError) Error() string        { return e.err.Error() }
func (e *configError) Unwrap() error        { return e.err }
func (e *configError) Is(target error) bool { return target == errConfig }

// self is how the user calls this program with the same config file, for
// command lines that are printed to be copied.
func (a *app) self() string {
	words := shellQuote(a.program)
	if a.configFile != "" {
		words += " -c " + shellQuote(a.configFile)
	}
	if a.socket != "" {
		words += " --socket " + shellQuote(a.socket)
	}
	return words
}

// runLine is how the user would start the daemon that was not found.
func (a *app) runLine() string {
	file := a.configFile
	if file == "" {
		if found, err := config.Find(); err == nil {
			file = found
		} else {
			file = "FILE"
		}
	}
	return shellQuote(a.program) + " run -c " + shellQuote(file)
}

func shellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
