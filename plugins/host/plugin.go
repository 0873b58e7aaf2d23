package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/wording"
	"github.com/standbyd/standbyd/plugins/hookspb"
	"github.com/standbyd/standbyd/plugins/internal/wire"
	"github.com/standbyd/standbyd/supervisor"
)

// The states of a plugin; the strings are in status.
const (
	stateStarting = "starting"
	stateRunning  = "running"
	stateLeading  = "leading"
	stateBackoff  = "backoff" // it ended, and will be started again
	stateFailed   = "failed"  // the same, but a restart alone is not expected to help
	stateStopped  = "stopped"
)

// plugin is one configured plugin of one role: its hooks, and a goroutine
// (keep) that has a process running for them.
type plugin struct {
	conf Config
	env  supervisor.HookEnv

	hurry bool               // tests: back-off without delay
	quit  context.CancelFunc // of keep; set by Start
	kept  chan struct{}      // closed when keep has returned

	mu       sync.Mutex
	moved    chan struct{} // closed and replaced at every change of state
	state    string
	now      *incarnation // in running and leading
	tried    bool         // an attempt to start has ended, well or not
	gate     bool         // the first process that came up has PrePromote
	pid      int
	token    role.Token
	lastErr  string
	lasting  string // an error that no success mends
	restarts int
	hangs    int
	missed   bool              // an OnPromote failed: ask for a repetition once up
	told     *role.Transition  // of the last OnPromote that some process may have seen
	owed     []role.Transition // OnDemotes that no process has answered
	tries    int               // of the first one in owed
	stopping context.Context   // of Stop, once called
}

var (
	_ supervisor.Hooks       = (*plugin)(nil)
	_ supervisor.PrePromoter = (*plugin)(nil)
)

func newPlugin(c Config) *plugin {
	return &plugin{conf: c, state: stateStopped, moved: make(chan struct{})}
}

// Start begins to start the process and returns at once.
func (p *plugin) Start(_ context.Context, env supervisor.HookEnv) error {
	p.env = env
	if err := prepareSockets(env.RuntimeDir); err != nil {
		err = fmt.Errorf("start plugin %s: %w", p.conf.Name, err)
		p.update(func() {
			p.lastErr, p.tried = err.Error(), true
			p.moveLocked(stateFailed)
		})
		return err
	}
	ctx, quit := context.WithCancel(context.Background())
	p.quit, p.kept = quit, make(chan struct{})
	p.update(func() { p.moveLocked(stateStarting) })
	go p.keep(ctx, env.RuntimeDir)
	return nil
}

// Stop ends the process in order, within ctx.
func (p *plugin) Stop(ctx context.Context) error {
	if p.quit == nil {
		p.update(func() { p.moveLocked(stateStopped) })
		return nil
	}
	p.mu.Lock()
	p.stopping = ctx
	p.mu.Unlock()
	p.quit()
	select {
	case <-p.kept:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	now := p.now
	p.mu.Unlock()
	if now != nil {
		now.kill("the supervisor stops and cannot wait longer")
	}
	await(p.kept, killLimit)
	return fmt.Errorf("stop plugin %s: it did not stop in time and was killed", p.conf.Name)
}

// HasPrePromote waits until the first process has said what it has, or has
// failed to come up: for about a hundredth of a second, at most StartTimeout.
// A plugin that does not come up at first gives the role no gate.
func (p *plugin) HasPrePromote() bool {
	ctx, cancel := context.WithTimeout(context.Background(), p.conf.StartTimeout)
	defer cancel()
	for {
		p.mu.Lock()
		tried, gate, moved := p.tried, p.gate, p.moved
		p.mu.Unlock()
		if tried {
			return gate
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

// PrePromote asks the plugin. Without a process there is nobody to say yes.
func (p *plugin) PrePromote(ctx context.Context, t role.Transition) error {
	now, err := p.ready(ctx, "PrePromote", p.conf.Timeout)
	if err != nil || !now.wants(wire.HookPrePromote) {
		return err
	}
	return p.judge(now.call(ctx, "PrePromote", p.conf.Timeout, func(ctx context.Context) (*hookspb.HookResponse, error) {
		return now.hooks.PrePromote(ctx, wire.ToRequest(t))
	}))
}

// OnPromote tells the plugin. If it fails because there is no process, the
// supervisor is asked to repeat it as soon as there is one.
func (p *plugin) OnPromote(ctx context.Context, t role.Transition) error {
	now, err := p.ready(ctx, "OnPromote", promoteWait)
	if err == nil {
		p.mu.Lock()
		p.told = &t
		p.mu.Unlock()
		if now.wants(wire.HookOnPromote) {
			err = p.judge(now.call(ctx, "OnPromote", p.conf.Timeout, func(ctx context.Context) (*hookspb.HookResponse, error) {
				return now.hooks.OnPromote(ctx, wire.ToRequest(t))
			}))
		}
	}
	p.update(func() {
		// Its own no is for the supervisor to retry.
		p.missed = err != nil && !errors.As(err, new(*HookError))
		if err == nil {
			// It was about another call, or a process that is no more.
			p.lastErr = p.lasting
		}
		if err == nil && p.now == now {
			p.token = t.Token
			p.moveLocked(stateLeading)
		}
	})
	return err
}

// OnDemote tells the plugin. Without a process it succeeds, because nothing
// of the plugin can be at work; the next process is told before anything else.
func (p *plugin) OnDemote(ctx context.Context, t role.Transition) error {
	p.mu.Lock()
	now := p.now
	if now == nil {
		p.missed = false
		p.oweLocked(t)
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	var err error
	if ctx.Err() != nil {
		now.kill("no time was left for OnDemote")
		now.proc.died(killLimit)
	}
	if now.wants(wire.HookOnDemote) {
		err = p.judge(now.call(ctx, "OnDemote", p.conf.Timeout, func(ctx context.Context) (*hookspb.HookResponse, error) {
			return now.hooks.OnDemote(ctx, wire.ToRequest(t))
		}))
	}
	p.update(func() {
		if err != nil && !errors.As(err, new(*HookError)) {
			p.oweLocked(t)
			return
		}
		if p.told != nil && p.told.Token <= t.Token {
			p.told = nil
		}
		if p.now == now && p.state == stateLeading && p.token <= t.Token {
			p.moveLocked(stateRunning)
		}
	})
	return err
}

// OnLeaderChange tells the plugin, if it runs.
func (p *plugin) OnLeaderChange(ctx context.Context, t role.Transition) error {
	now, err := p.ready(ctx, "OnLeaderChange", 0)
	if err != nil || !now.wants(wire.HookOnLeaderChange) {
		return err
	}
	return p.judge(now.call(ctx, "OnLeaderChange", p.conf.Timeout, func(ctx context.Context) (*hookspb.HookResponse, error) {
		return now.hooks.OnLeaderChange(ctx, wire.ToRequest(t))
	}))
}

// Status never blocks for longer than another field's update.
func (p *plugin) Status() supervisor.HookStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return supervisor.HookStatus{State: p.state, PID: p.pid, Token: p.token, LastError: p.lastErr, Hangs: p.hangs}
}

// promoteWait is how long an OnPromote waits for a process that is starting:
// longer than a start takes, and shorter than one that never ends, for the
// role's other plugins wait too. A process that comes up later is told then.
const promoteWait = time.Second

// ready returns the running process, and waits for one that is starting. In
// back-off it fails at once: the next start may be far away.
func (p *plugin) ready(ctx context.Context, hook string, wait time.Duration) (*incarnation, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		p.mu.Lock()
		state, now, last, moved := p.state, p.now, p.lastErr, p.moved
		p.mu.Unlock()
		switch {
		case now != nil:
			return now, nil
		case state != stateStarting:
			return nil, fmt.Errorf("plugin %s: %s: it is not running (%s): %s", p.conf.Name, hook, state, last)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, fmt.Errorf("plugin %s: %s: it is still starting: %w", p.conf.Name, hook, context.Cause(ctx))
		}
	}
}

// judge notes a failed call.
func (p *plugin) judge(err error) error {
	if err == nil || errors.Is(err, errCalledOff) {
		return err
	}
	p.update(func() {
		if !errors.Is(err, ErrHung) {
			p.lastErr = p.short(err)
			return
		}
		p.hangs++
		p.lastErr = p.tallied(err) // keep may have noted the end of the process before
	})
	return err
}

// tallied is the text of an error that ended a process, and how often that
// has happened. The caller holds the lock.
func (p *plugin) tallied(err error) string {
	var tally []string
	if p.restarts > 1 || p.restarts == 1 && p.hangs > 0 {
		tally = append(tally, "failed "+wording.Count(p.restarts, "time"))
	}
	if p.hangs > 0 {
		tally = append(tally, "hung "+wording.Count(p.hangs, "time"))
	}
	if len(tally) == 0 {
		return p.short(err)
	}
	return fmt.Sprintf("%s (%s)", p.short(err), strings.Join(tally, ", "))
}

// short is an error's text for a place where the plugin's name stands already.
func (p *plugin) short(err error) string {
	text := strings.TrimPrefix(err.Error(), "plugin "+p.conf.Name+": ")
	return strings.Join(strings.Fields(text), " ") // go-plugin's has paragraphs
}

// oweLocked keeps an OnDemote for the next process, if one was ever told of
// the promotion.
func (p *plugin) oweLocked(t role.Transition) {
	if p.told == nil || p.told.Token > t.Token {
		return
	}
	p.told = nil
	p.owed = append(p.owed, t)
	if len(p.owed) > 16 {
		p.owed = p.owed[1:]
	}
}

// update changes what Status shows and tells the supervisor, without the lock:
// it may ask for Status at once.
func (p *plugin) update(change func()) {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	if p.env.Changed != nil {
		p.env.Changed()
	}
}

// moveLocked sets the state and wakes whoever waits for a change.
func (p *plugin) moveLocked(state string) {
	p.state = state
	close(p.moved)
	p.moved = make(chan struct{})
}

func pidOf(i *incarnation) int {
	pid, _ := strconv.Atoi(i.proc.ID())
	return pid
}
