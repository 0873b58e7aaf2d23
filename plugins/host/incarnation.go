package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/standbyd/standbyd/plugins/hookspb"
	"github.com/standbyd/standbyd/plugins/internal/wire"
)

const (
	// callLimit is the deadline of calls that bring none: go-plugin's own.
	callLimit = time.Second
	// shutdownGrace is how long a plugin that was asked to end may take.
	shutdownGrace = time.Second
	// markName is the variable by which descendants of a plugin are known; its
	// value is the folder of the plugin's sockets, which no other one has.
	markName = "STANDBYD_PLUGIN_OF"
	// killLimit is how long the kernel may take to end what was killed.
	killLimit = 5 * time.Second
)

// incarnation is one process of a plugin with its connection: made by launch,
// used by the hooks, ended once.
type incarnation struct {
	name   string
	proc   *process
	client *goplugin.Client
	conn   goplugin.ClientProtocol // closed by client.Kill
	hooks  hookspb.HooksClient
	about  *hookspb.DescribeResponse

	free  sync.Once
	freed chan struct{} // closed when go-plugin has let go
}

// wants reports whether the plugin has the hook.
func (i *incarnation) wants(hook string) bool { return slices.Contains(i.about.GetHooks(), hook) }

// needsPerson marks an error that a restart does not mend.
type needsPerson struct{ error }

func (e needsPerson) Unwrap() error { return e.error }

// launch starts a process and brings it as far as a plugin that is configured.
// When it fails nothing is left of it. ctx ends the attempt.
func launch(ctx context.Context, c *Config, role, sockets string, log func(string), check bool) (*incarnation, error) {
	table, err := wire.EncodeTable(c.Table)
	if err != nil {
		return nil, needsPerson{err}
	}
	bin, err := findBinary(c.Command[0], c.Dir, c.SHA256)
	if err != nil {
		return nil, needsPerson{err}
	}
	defer bin.close()
	sweepSockets(sockets)
	mark := markName + "=" + sockets
	killLeftovers(mark) // of a supervisor that was killed

	i := &incarnation{name: c.Name, proc: newProcess(mark, log), freed: make(chan struct{})}
	i.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  wire.Handshake(),
		VersionedPlugins: wire.Versions(nil),
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		StartTimeout:     c.StartTimeout,
		SkipHostEnv:      true,
		AutoMTLS:         c.AutoMTLS,
		Logger:           quietLogger{c.Logger.Named("go-plugin").With("plugin", c.Name)},
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: sockets},
		SyncStdout:       &lineWriter{each: func(line string) { log("stdout: " + plainLine(line)) }},
		SyncStderr:       &lineWriter{each: func(line string) { log(plainLine(line)) }},
		GRPCDialOptions:  []grpc.DialOption{grpc.WithChainUnaryInterceptor(everyCallEnds)},
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, _ string) (runner.Runner, error) {
			handshake := append(spec.Env, socketDirName+"="+sockets, mark) // the last one counts
			cmd := &exec.Cmd{Path: bin.path, Args: c.Command, Dir: c.Dir, Env: environment(os.Environ(), c.Env, handshake)}
			if bin.file != nil {
				bin.useVerified(cmd)
			}
			i.proc.cmd = cmd
			return i.proc, nil
		},
	})
	if err := i.connect(ctx, c, role, table, check); err != nil {
		err = i.explain(ctx, err, bin.path, c.StartTimeout)
		i.abandon("it did not come up")
		return nil, err
	}
	return i, nil
}

func (i *incarnation) connect(ctx context.Context, c *Config, role string, table []byte, check bool) error {
	// go-plugin holds a lock during Start that its Kill wants too, so a start
	// is ended from below, by killing the process.
	limit := time.AfterFunc(c.StartTimeout+c.Timeout, func() { i.kill("it did not come up in time") })
	defer limit.Stop()
	stop := context.AfterFunc(ctx, func() { i.kill("the start was called off") })
	defer stop()

	if _, err := i.client.Start(); err != nil {
		return err
	}
	conn, err := i.client.Client()
	if err != nil {
		return err
	}
	service, err := conn.Dispense(wire.Service)
	if err != nil {
		return err
	}
	i.conn, i.hooks = conn, service.(hookspb.HooksClient)

	dctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	i.about, err = i.hooks.Describe(dctx, &hookspb.DescribeRequest{})
	if err != nil {
		return i.callError(dctx, "Describe", c.Timeout, err)
	}
	if !i.wants(wire.HookConfigure) {
		if len(c.Table) > 0 {
			return needsPerson{fmt.Errorf("plugin %s takes no config, and the configuration has one for it", c.Name)}
		}
		return nil
	}
	err = i.call(ctx, "Configure", c.Timeout, func(ctx context.Context) (*hookspb.HookResponse, error) {
		return i.hooks.Configure(ctx, &hookspb.ConfigureRequest{Role: role, Plugin: c.Name, TableJson: table, CheckOnly: check})
	})
	var own *HookError
	if errors.As(err, &own) {
		return needsPerson{err}
	}
	return err
}

// explain turns the error of a failed start into what an operator can use.
// What the process did says more than what go-plugin missed.
func (i *incarnation) explain(ctx context.Context, err error, path string, limit time.Duration) error {
	p := i.proc
	if ctx.Err() != nil || errors.As(err, new(needsPerson)) {
		return err
	}
	if p.ID() == "" {
		return needsPerson{startError(path, err)}
	}
	died := p.died(drainAfterDeath)
	p.mu.Lock()
	handshake, shaken := p.handshake, p.shaken
	byItself := died && p.killedFor == ""
	p.mu.Unlock()
	name := filepath.Base(path)
	switch {
	case handshake != nil:
		return needsPerson{fmt.Errorf("%s %w", name, handshake)}
	case byItself && shaken:
		return fmt.Errorf("%s died while it started: %s", name, p.end())
	case byItself:
		return fmt.Errorf("%s ended before its handshake: %s", name, p.end())
	case shaken:
		// The handshake was read, and what followed went wrong.
		return fmt.Errorf("%s did not come up after its handshake: %w", name, err)
	}
	return fmt.Errorf("%s printed no handshake within %v: is it a standbyd plugin?", name, limit)
}

// HookError is what a plugin's hook answered, as opposed to a plugin that
// died, hung or could not be reached.
type HookError struct {
	Plugin, Hook, Msg string
}

func (e *HookError) Error() string {
	return fmt.Sprintf("plugin %s: %s: %s", e.Plugin, e.Hook, e.Msg)
}

// ErrHung is wrapped by the error of a hook that did not return by its
// deadline. Its plugin was killed with its process group.
var ErrHung = errors.New("did not return by its deadline")

// ErrDied is wrapped by the error of a hook during which the plugin's process
// ended, or its connection broke (then it was killed).
var ErrDied = errors.New("the plugin died")

// errCalledOff marks a call whose caller did not want to wait any longer.
var errCalledOff = errors.New("called off")

// call makes one hook's call. When it returns, the hook has returned or the
// process is dead (or cannot be killed, which the error says): a part of the
// time that ctx leaves is kept for that. Only a hook whose ctx was cancelled
// may go on: then the plugin's next one does not begin before it returned.
func (i *incarnation) call(ctx context.Context, hook string, limit time.Duration,
	f func(context.Context) (*hookspb.HookResponse, error)) error {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		limit = min(limit, left-min(left/10, 250*time.Millisecond))
	}
	if ctx.Err() != nil || limit <= 0 {
		return fmt.Errorf("plugin %s: %s: not called: %w", i.name, hook, context.Cause(ctx))
	}
	cctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := f(cctx)
	if err != nil {
		return i.callError(cctx, hook, limit, err)
	}
	if r.GetError() != "" {
		return &HookError{Plugin: i.name, Hook: hook, Msg: r.GetError()}
	}
	return nil
}

// callError judges a call that brought no answer, and ends the process unless
// it was called off: what it is doing cannot be known any more.
func (i *incarnation) callError(ctx context.Context, hook string, limit time.Duration, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		// The plugin sees it in its own context; the next call waits for it,
		// and has a deadline.
		return fmt.Errorf("plugin %s: %s: %w: %w", i.name, hook, errCalledOff, context.Cause(ctx))
	}
	hung := status.Code(err) == codes.DeadlineExceeded || ctx.Err() != nil
	// A death breaks the connection just before it is seen.
	if !hung && i.proc.died(drainAfterDeath) {
		return fmt.Errorf("plugin %s: %s: %w: %s", i.name, hook, ErrDied, i.proc.end())
	}
	cause := ErrDied
	text := fmt.Sprintf("its connection failed in %s: %s", hook, status.Convert(err).Message())
	if hung {
		cause = ErrHung
		text = fmt.Sprintf("%s did not return within %v", hook, limit.Round(time.Millisecond))
	}
	i.kill(text)
	if !i.proc.died(killLimit) {
		return fmt.Errorf("plugin %s: %s: %w: %s; pid %s was killed and is still there", i.name, hook, cause, text, i.proc.ID())
	}
	return fmt.Errorf("plugin %s: %s: %w: %s", i.name, hook, cause, i.proc.end())
}

func (i *incarnation) kill(why string) { i.proc.kill(why) }

// shutdown ends a plugin in order: its own Stop, then go-plugin's, then the
// kill. It returns when the process is dead, or cannot be killed.
func (i *incarnation) shutdown(ctx context.Context, limit time.Duration) error {
	var err error
	if i.wants(wire.HookStop) {
		err = i.call(ctx, "Stop", limit, func(ctx context.Context) (*hookspb.HookResponse, error) {
			return i.hooks.Stop(ctx, &hookspb.StopRequest{})
		})
	}
	done := i.release()
	if !i.proc.died(shutdownGrace) {
		i.kill("it did not exit when asked to")
		if !i.proc.died(killLimit) {
			return fmt.Errorf("plugin %s: pid %s was killed and is still there", i.name, i.proc.ID())
		}
	}
	await(done, shutdownGrace)
	return err
}

// abandon kills what there is and frees it.
func (i *incarnation) abandon(why string) {
	i.kill(why)
	if i.proc.ID() != "" {
		i.proc.died(killLimit)
	}
	await(i.release(), shutdownGrace)
}

// release frees what go-plugin holds. Its Kill may block for ever on a plugin
// that cannot be killed, so it runs beside us.
func (i *incarnation) release() <-chan struct{} {
	i.free.Do(func() {
		go func() {
			defer close(i.freed)
			i.client.Kill()
		}()
	})
	return i.freed
}

func await(done <-chan struct{}, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// everyCallEnds gives a deadline to calls that have none.
func everyCallEnds(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callLimit)
		defer cancel()
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}
