package supervisor

import (
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// EventType names what happened. The strings are append-only.
type EventType string

const (
	EventSupervisorStarted EventType = "supervisor-started"
	EventSupervisorStopped EventType = "supervisor-stopped"
	EventRoleState         EventType = "role-state"     // Text: "led -> vacant: reason"
	EventWorkerStarted     EventType = "worker-started" // a process exists
	EventWorkerReady       EventType = "worker-ready"
	EventWorkerUnhealthy   EventType = "worker-unhealthy" // its health probe failed too often, or it broke its watchdog
	EventWorkerHealthy     EventType = "worker-healthy"   // follows worker-unhealthy of the same PID
	EventWorkerExited      EventType = "worker-exited"    // follows worker-started of the same PID; before any new start
	EventWorkerBackoff     EventType = "worker-backoff"
	EventWorkerFailed      EventType = "worker-failed"
	EventWorkerAdopted     EventType = "worker-adopted"
	EventLeaderLost        EventType = "leader-lost" // precedes hook demotes of the same token
	EventLeaderActive      EventType = "leader-active"
	EventReloaded          EventType = "reloaded" // a new config is at work; Error says what of it is not
	EventChange            EventType = "change"   // a switchover or a failover was asked for; Worker is who shall lead
	EventPaused            EventType = "paused"   // Text: for how long
	EventResumed           EventType = "resumed"  // Text: why
	EventFailover          EventType = "failover" // Record is set; follows leader-active and the hooks
	EventHook              EventType = "hook"     // one hook call ended: Text is the moment, Error its failure
	EventPlugin            EventType = "plugin"   // a plugin's status changed: Text is its state, Error its last error
	EventWarning           EventType = "warning"  // something an operator should know
)

// Event is one thing that happened. Events of one role are in order; a slow
// subscriber loses the oldest ones and sees how many in Dropped.
type Event struct {
	ID      uint64      `json:"id"` // rises by one per event of this supervisor
	At      time.Time   `json:"at"`
	Type    EventType   `json:"type"`
	Role    string      `json:"role,omitempty"`
	Worker  string      `json:"worker,omitempty"`
	Plugin  string      `json:"plugin,omitempty"`
	PID     int         `json:"pid,omitempty"`
	Token   role.Token  `json:"token,omitzero"`
	Reason  role.Reason `json:"reason,omitempty"`
	Text    string      `json:"text,omitempty"`
	Error   string      `json:"error,omitempty"`
	Exit    *Exit       `json:"exit,omitempty"`
	Record  *Record     `json:"record,omitempty"`
	Dropped uint64      `json:"dropped,omitempty"` // events lost just before this one
}
