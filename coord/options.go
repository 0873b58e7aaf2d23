package coord

import (
	"context"
	"fmt"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

// Option sets something that few workers need. Timers, fencing and proof stand
// in the segment's header, which the supervisor writes; a worker's own options
// cannot change them.
type Option func(*options)

type options struct {
	warmup    func(context.Context, *Member) error
	check     func() error
	callbacks *Callbacks
	name      string
	candidate *Candidate
	create    shm.Params
}

func newOptions(opts []Option) options {
	o := options{create: libraryParams()}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// libraryParams are those of a segment that JoinFile creates.
func libraryParams() shm.Params {
	p := shm.DefaultParams()
	p.Grace = 10
	p.ProgressLimit = 10 * time.Second
	return p
}

// WithWarmup sets what Run does between joining and saying Ready: load state,
// fill caches. It may take as long as it needs (the supervisor's start_timeout
// applies); the member beats meanwhile. An error ends Run with it.
func WithWarmup(f func(context.Context, *Member) error) Option {
	return func(o *options) { o.warmup = f }
}

// WithCheck sets a function that tells whether the work in this process moves.
// It is called on a goroutine of its own, several times within the progress
// limit while the member leads, and never twice at once. If it has not
// returned nil for the progress limit of the segment's header, whether it
// fails or hangs, the member counts as hung (see [Member.Pulse]).
func WithCheck(f func() error) Option {
	return func(o *options) { o.check = f }
}

// WithCallbacks sets functions in the style of client-go's leader election.
// See [Callbacks].
func WithCallbacks(c Callbacks) Option {
	return func(o *options) { o.callbacks = &c }
}

// WithName is what observers in this process and messages call it. The default
// is the worker's name, or "pid N" without a supervisor.
func WithName(name string) Option {
	return func(o *options) { o.name = name }
}

// WithCandidate is what the member says of itself when it joins, in place of
// what the supervisor's configuration says for this worker.
func WithCandidate(c Candidate) Option {
	return func(o *options) { o.candidate = &c }
}

// WithFence is the fencing of a segment that JoinFile creates; the default is
// FenceToken. A segment that exists keeps its own.
func WithFence(f Fence) Option {
	return func(o *options) { o.create.Fence = uint8(f) }
}

// WithDrainTimeout is how long lead may drain, in a segment that JoinFile
// creates; the default is 5 s, 0 is without limit. A segment that exists keeps
// its own.
func WithDrainTimeout(d time.Duration) Option {
	return func(o *options) { o.create.DrainLimit = d }
}

// WithProgressTimeout is the progress limit of a segment that JoinFile
// creates; the default is 10 s, 0 is without limit. A segment that exists keeps
// its own.
func WithProgressTimeout(d time.Duration) Option {
	return func(o *options) { o.create.ProgressLimit = d }
}

// WithTick sets how often the members of a segment that JoinFile creates beat,
// and how many whole epochs a leader may be behind before it counts as hung.
// The defaults are 100 ms and 10. A segment that exists keeps its own.
func WithTick(tick time.Duration, grace uint64) Option {
	return func(o *options) { o.create.Tick, o.create.Grace = tick, grace }
}

// WithPayload is the largest payload, in bytes up to 4096, of a segment that
// JoinFile creates; the default is 48, 0 is none. A segment that exists keeps
// its own. See [Payload].
func WithPayload(bytes int) Option {
	return func(o *options) { o.create.Cell = bytes }
}

// Fence says what is done to a predecessor before the next leader leads.
type Fence uint8

// The fences, as segments hold them.
const (
	FenceToken   = Fence(shm.FenceToken)   // nothing: Check and the token guard
	FenceProcess = Fence(shm.FenceProcess) // its process is made to end, and proven dead
	FenceTree    = Fence(shm.FenceTree)    // and everything that it started
)

func (f Fence) String() string {
	switch f {
	case FenceToken:
		return "token"
	case FenceProcess:
		return "process"
	case FenceTree:
		return "tree"
	}
	return fmt.Sprintf("fence %d", uint8(f))
}

// Callbacks are client-go's, with its meaning where a process can be fenced:
//
//   - OnStartedLeading is called when the member leads, beside lead, or in its
//     place if Run got a nil lead; then leadership goes on after it has
//     returned, until its context ends. The lease is released only when both
//     have returned.
//   - OnStoppedLeading is called after that and before the release, only if
//     the member had led. The drain limit covers it.
//   - OnNewLeader is called with the name of each new leader, this member
//     included, on a goroutine of its own; if leaders change faster than it
//     returns, it is told of the latest only.
//
// Nil fields are skipped.
type Callbacks struct {
	OnStartedLeading func(context.Context)
	OnStoppedLeading func()
	OnNewLeader      func(name string)
}
