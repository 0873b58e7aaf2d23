package plugins

import (
	"context"

	"github.com/standbyd/standbyd/coord/role"
)

// Transition is one change of leadership, as a hook is told of it. Deadline is
// when the hook must have returned.
type Transition = role.Transition

// Token is the fencing token of a leadership. For one role it rises strictly,
// over restarts and reboots too.
type Token = role.Token

// Describer says what the plugin is, for people. It is called once per
// process, first, and must not block.
type Describer interface {
	Describe() Description
}

// Description is shown to operators. Every field may be empty.
type Description struct {
	Name    string
	Version string
	Summary string // one line
}

// Configurer receives the plugin's config table. It is called once per
// process, after Describe and before any transition, and also by a check of
// the configuration, when nothing is led afterwards: it validates, and starts
// nothing. An error is shown to the operator and the plugin is not used.
// Deadline: the hook deadline.
type Configurer interface {
	Configure(ctx context.Context, table Table) error
}

// PrePromoter is asked before a new leader leads, and a plugin that has it
// gives the role its gate: no lead starts before the answer. An error is a
// veto: the candidate releases the lease and another is tried. A plugin that
// is not running, or does not answer in time, vetoes too. It may be asked for
// a candidate that never leads, and again for the same one.
type PrePromoter interface {
	PrePromote(ctx context.Context, t Transition) error
}

// Promoter is told that a worker leads; its active term is published. The call
// is repeated with the same token after a failure, after a restart of the
// plugin, and with reason "adopted" by a new supervisor. A failure is shown
// and does not cost the leadership, unless the role says so.
type Promoter interface {
	OnPromote(ctx context.Context, t Transition) error
}

// Demoter is told that the leadership t.Token has ended, or is about to be
// ended in order. Whatever the plugin does for that leadership has stopped
// when it returns. It may be called for a token that this process was never
// promoted for, when an earlier process of the plugin was and died.
type Demoter interface {
	OnDemote(ctx context.Context, t Transition) error
}

// LeaderWatcher is told of every completed promotion, after all OnPromote. It
// is informational: nothing waits for it but the plugin's own next call.
type LeaderWatcher interface {
	OnLeaderChange(ctx context.Context, t Transition) error
}

// Stopper is told that the supervisor ends the plugin in order. The process
// exits after it; it is skipped when the process dies in another way.
type Stopper interface {
	Stop(ctx context.Context) error
}
