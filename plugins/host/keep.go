package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/standbyd/standbyd/plugins/hookspb"
	"github.com/standbyd/standbyd/plugins/internal/wire"
)

const (
	restartMin = 100 * time.Millisecond
	restartMax = 30 * time.Second
	// steady is how long a process must have run for its end to count as the
	// first one again.
	steady = 10 * time.Second

	healthEvery  = 2 * time.Second
	healthMisses = 3
)

// keep has a process running until ctx ends.
func (p *plugin) keep(ctx context.Context, sockets string) {
	defer close(p.kept)
	delay := restartMin
	for ctx.Err() == nil {
		began := time.Now()
		err := p.live(ctx, sockets)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > steady || p.hurry {
			delay = restartMin
		}
		p.fell(err)
		// Jitter, so that the plugins of a machine do not start as one.
		select {
		case <-ctx.Done():
		case <-time.After(delay/2 + rand.N(delay)):
		}
		delay = min(2*delay, restartMax)
	}
	sweepSockets(sockets)
	p.update(func() {
		p.pid, p.now = 0, nil
		p.moveLocked(stateStopped)
	})
}

// live is one process from its start to its end; the error says why it ended.
func (p *plugin) live(ctx context.Context, sockets string) error {
	var first bool
	p.update(func() {
		first = !p.tried
		p.moveLocked(stateStarting)
	})
	i, err := launch(ctx, &p.conf, p.env.Role, sockets, p.log, false)
	if err != nil {
		return err
	}
	defer i.abandon("it is replaced")
	for up := false; !up; up = p.rose(i, first) {
		if err := p.settle(ctx, i); err != nil {
			return err
		}
	}
	err = p.watch(ctx, i)
	if ctx.Err() == nil {
		return err
	}
	p.mu.Lock()
	stopping := p.stopping
	p.mu.Unlock()
	if stopping == nil {
		stopping = ctx
	}
	if err := i.shutdown(stopping, p.conf.Timeout); err != nil {
		p.judge(err)
	}
	return ctx.Err()
}

// settle tells a new process of the demotions that its predecessors owe. What
// it refuses is settled too; what kills it is tried three times in all.
func (p *plugin) settle(ctx context.Context, i *incarnation) error {
	for {
		p.mu.Lock()
		if len(p.owed) == 0 {
			p.mu.Unlock()
			return nil
		}
		t := p.owed[0]
		p.mu.Unlock()
		var err error
		if i.wants(wire.HookOnDemote) {
			err = p.judge(i.call(ctx, "OnDemote", p.conf.Timeout, func(ctx context.Context) (*hookspb.HookResponse, error) {
				return i.hooks.OnDemote(ctx, wire.ToRequest(t))
			}))
		}
		var own *HookError
		lost := err != nil && !errors.As(err, &own)
		p.mu.Lock()
		p.tries++
		if !lost || p.tries >= 3 {
			p.owed, p.tries = p.owed[1:], 0
		}
		p.mu.Unlock()
		if lost {
			return err
		}
	}
}

// rose publishes a process that is ready for hooks, unless it owes another
// OnDemote by now.
func (p *plugin) rose(i *incarnation, first bool) (up bool) {
	var replay bool
	p.update(func() {
		if up = len(p.owed) == 0; !up {
			return
		}
		p.now, p.pid, p.token = i, pidOf(i), 0
		if first {
			p.gate = i.wants(wire.HookPrePromote)
		}
		if i.wants(wire.HookPrePromote) && !p.gate {
			p.lasting = "it has PrePromote and was not up when the role started: the role has no gate until it is started anew"
			p.lastErr = p.lasting
		}
		replay = !first || p.missed
		p.tried, p.missed = true, false
		p.moveLocked(stateRunning)
	})
	if replay && p.env.Replay != nil {
		p.env.Replay()
	}
	return up
}

// fell notes the end of a process, or of the attempt to start one.
func (p *plugin) fell(err error) {
	p.update(func() {
		p.now, p.pid, p.token = nil, 0, 0
		p.tried = true
		p.restarts++
		p.lastErr = p.tallied(err)
		if errors.As(err, new(needsPerson)) {
			p.moveLocked(stateFailed)
		} else {
			p.moveLocked(stateBackoff)
		}
	})
	p.log(p.Status().LastError)
}

// watch returns when the process is dead, or ctx has ended. A process that
// answers no health check is killed: nothing else shows that it is stopped.
func (p *plugin) watch(ctx context.Context, i *incarnation) error {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-i.proc.dead:
			return errors.New(i.proc.end())
		case <-tick.C:
		}
		if i.conn.Ping() == nil { // ends after callLimit
			missed = 0
			continue
		}
		if missed++; missed >= healthMisses {
			i.kill(fmt.Sprintf("it did not answer %d health checks in a row", missed))
		}
	}
}

// log writes a line to the role's plugin log, which knows the plugin's name.
func (p *plugin) log(line string) {
	if p.env.Log != nil {
		p.env.Log(line)
	}
}
