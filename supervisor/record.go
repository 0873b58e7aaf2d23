package supervisor

import (
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// Record is one change of leader with its measured phases, in microseconds
// from zero: just before the fault for a drill, else the earliest evidence
// of the predecessor's end that any member stamped; for a hang that is its
// last beat, known to about a tick. A phase that was not measured is nil.
type Record struct {
	Role       string      `json:"role"`
	At         time.Time   `json:"at"`
	Reason     role.Reason `json:"reason"`
	Cause      string      `json:"cause,omitempty"` // of a hang that standbyd has ended: the health probe or the watchdog, in words
	Term       uint64      `json:"term"`
	Token      role.Token  `json:"token"`
	From       string      `json:"from"` // worker that led before; empty if nobody did
	FromPID    int         `json:"from_pid"`
	To         string      `json:"to"`
	ToPID      int         `json:"to_pid"`
	Fault      Fault       `json:"fault,omitempty"` // of a drill
	ReturnedUS *float64    `json:"returned_us"`     // the predecessor's lead had returned, in order
	EndedUS    *float64    `json:"ended_us"`        // somebody saw that its process had ended, or hung
	DetectedUS *float64    `json:"detected_us"`     // the claimant had its proof
	ClaimedUS  *float64    `json:"claimed_us"`      // the lease was its own
	FencedUS   *float64    `json:"fenced_us"`       // nobody that led before could act any more
	ActiveUS   *float64    `json:"active_us"`       // the active term was published; lead runs
	HooksUS    *float64    `json:"hooks_us"`        // the last OnPromote had returned
}
