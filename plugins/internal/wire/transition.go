package wire

import (
	"context"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/plugins/hookspb"
)

// ToRequest writes a transition as a message. The deadline travels as the
// call's own, so that two clocks need not agree.
func ToRequest(t role.Transition) *hookspb.TransitionRequest {
	return &hookspb.TransitionRequest{
		Role:     t.Role,
		Token:    uint64(t.Token),
		Worker:   t.Worker,
		Pid:      int64(t.PID),
		Previous: t.Previous,
		Reason:   string(t.Reason),
		Segment:  t.Segment,
	}
}

// FromRequest reads a transition; its deadline is that of ctx.
func FromRequest(ctx context.Context, r *hookspb.TransitionRequest) role.Transition {
	t := role.Transition{
		Role:     r.GetRole(),
		Token:    role.Token(r.GetToken()),
		Worker:   r.GetWorker(),
		PID:      int(r.GetPid()),
		Previous: r.GetPrevious(),
		Reason:   role.Reason(r.GetReason()),
		Segment:  r.GetSegment(),
	}
	t.Deadline, _ = ctx.Deadline()
	return t
}
