package role

import "time"

// Transition is one change of leadership as hooks and plugins are told of it.
// The same Transition may be delivered more than once; Token is the
// idempotency key.
type Transition struct {
	Role     string `json:"role"`
	Token    Token  `json:"token"`  // of the leadership that begins (promote) or ends (demote)
	Worker   string `json:"worker"` // ROLE-INDEX of the leader in question
	PID      int    `json:"pid"`
	Previous string `json:"previous,omitempty"` // the worker that led before, empty if nobody did
	Reason   Reason `json:"reason"`
	// Segment is the path of the role's segment, so that a plugin can watch
	// the token itself. Empty when there is none.
	Segment string `json:"segment,omitempty"`
	// Deadline is when the hook must have returned. Zero means no limit.
	Deadline time.Time `json:"deadline,omitzero"`
}
