package supervisor

import (
	"context"

	"github.com/standbyd/standbyd/coord/role"
)

// NamedHooks is one entry of a role's chain of hooks; Name appears in events,
// in status and in errors.
type NamedHooks struct {
	Name  string
	Hooks Hooks
	// Version tells two settings of the hooks apart: a reload leaves hooks as
	// they are whose Name and Version stand in the new config too.
	Version string
}

// Hooks is told of the leadership of one role. All calls for a role come from
// one serial queue, never concurrently; Start comes first and Stop last.
//
//	Start ─▶ ( OnPromote(T) ─▶ OnDemote(T) )* ─▶ Stop
//
// OnDemote(T) of every hook has returned, or failed for good, before any
// OnPromote of a later token starts. Calls may be repeated with the same
// token (after a failure, a plugin's restart, or an adoption with reason
// "adopted"); they are never skipped for a leadership that was promoted. Each
// call's context ends at RoleConfig.HookTimeout. A hook that does not return
// by then is abandoned with an error; implementations that run code of others
// end that code before they return.
//
// Implementations embed UnimplementedHooks for the moments they do not want.
type Hooks interface {
	// Start is called once before the role's first worker is launched. It
	// gets what the hook may use for as long as it lives. An error is shown
	// in status and does not stop the role.
	Start(ctx context.Context, env HookEnv) error
	// OnPromote: the worker named in t leads, its active term is published.
	OnPromote(ctx context.Context, t role.Transition) error
	// OnDemote: the leadership t.Token has ended, or is about to be ended by
	// an orderly stop.
	OnDemote(ctx context.Context, t role.Transition) error
	// OnLeaderChange follows every completed promotion; purely informational.
	OnLeaderChange(ctx context.Context, t role.Transition) error
	// Stop ends whatever the hook runs. It is called once, also when Start failed.
	Stop(ctx context.Context) error
	// Status is shown in Snapshot. It must not block; safe for concurrent use.
	Status() HookStatus
}

// PrePromoter is implemented by hooks that want a say before a new leader
// leads. A role that has one gets the gate: no lead starts until every
// PrePromote has returned nil. An error is a veto: the candidate releases the
// lease and the next one is tried.
//
// HasPrePromote is asked once, after Start.
type PrePromoter interface {
	HasPrePromote() bool
	PrePromote(ctx context.Context, t role.Transition) error
}

// HookEnv is what a hook gets from the supervisor at Start.
type HookEnv struct {
	Role string
	// RuntimeDir is a private folder (0700) with a short path, for sockets.
	RuntimeDir string
	// Segment is the path of the role's segment.
	Segment string
	// Log appends one line to the role's plugin log and never blocks for long.
	Log func(line string)
	// Changed asks the supervisor to look at Status again and to emit an
	// event; Replay also asks it to call OnPromote once more with the current
	// leadership's token, if somebody leads (a plugin that was restarted).
	// Both are safe for concurrent use and return at once.
	Changed func()
	Replay  func()
}

// HookStatus is one row of a role's plugins in Snapshot.
type HookStatus struct {
	State     string     `json:"state"` // starting, running, leading, backoff, failed, stopped
	PID       int        `json:"pid"`   // 0 if it is no process
	Token     role.Token `json:"token"` // of the leadership it was last promoted for, 0 if none
	LastError string     `json:"last_error"`
	Hangs     int        `json:"hangs"` // calls that did not return in time, since this supervisor began
}

// UnimplementedHooks does nothing at every moment. Embed it.
type UnimplementedHooks struct{}

func (UnimplementedHooks) Start(context.Context, HookEnv) error                  { return nil }
func (UnimplementedHooks) OnPromote(context.Context, role.Transition) error      { return nil }
func (UnimplementedHooks) OnDemote(context.Context, role.Transition) error       { return nil }
func (UnimplementedHooks) OnLeaderChange(context.Context, role.Transition) error { return nil }
func (UnimplementedHooks) Stop(context.Context) error                            { return nil }
func (UnimplementedHooks) Status() HookStatus                                    { return HookStatus{State: "running"} }

var _ Hooks = UnimplementedHooks{}
