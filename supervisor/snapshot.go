package supervisor

import (
	"fmt"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/wording"
)

// Snapshot is the whole visible state at one moment; its JSON form is what
// `standbyd status -o json` prints.
type Snapshot struct {
	Supervisor SupervisorStatus `json:"supervisor"`
	Roles      []RoleStatus     `json:"roles"` // in the order of Config.Roles
}

// Only is the snapshot with one of its roles; ErrNoRole if there is none of that
// name.
func (s Snapshot) Only(name string) (Snapshot, error) {
	var names []string
	for _, r := range s.Roles {
		if r.Name == name {
			s.Roles = []RoleStatus{r}
			return s, nil
		}
		names = append(names, r.Name)
	}
	return s, fmt.Errorf("%w: %q (there are: %s)", ErrNoRole, name, wording.Few(names))
}

// SupervisorStatus describes the supervising process.
type SupervisorStatus struct {
	PID        int       `json:"pid"`
	Version    string    `json:"version"`
	StartedAt  time.Time `json:"started_at"`
	ConfigFile string    `json:"config_file,omitempty"`
	// Warnings are about the folders: what is wrong with them now, and that
	// they were removed, and made again, since the start.
	Warnings []string `json:"warnings,omitempty"`
	// DamagedHistory counts the lines of the history that the last reading, at
	// the start or for History, found damaged and left out.
	DamagedHistory int64 `json:"damaged_history,omitempty"`
}

// RoleState is what a role is doing. The strings are append-only.
type RoleState string

const (
	RoleStarting  RoleState = "starting"  // nobody has led yet and workers are coming up
	RoleLed       RoleState = "led"       // somebody leads
	RoleVacant    RoleState = "vacant"    // nobody leads and somebody may
	RoleSwitching RoleState = "switching" // a planned change is under way
	RoleHeld      RoleState = "held"      // nobody leads and nobody may, until ack or the cool-down
	RolePaused    RoleState = "paused"    // no automatic failover
	RoleStopped   RoleState = "stopped"
)

// WorkerState is what a worker is doing. The strings are append-only.
type WorkerState string

const (
	WorkerStarting WorkerState = "starting" // launched, not ready yet
	WorkerStandby  WorkerState = "standby"  // ready to take over
	WorkerLeader   WorkerState = "leader"
	WorkerDraining WorkerState = "draining" // has been asked to stop leading and has not finished
	WorkerBackoff  WorkerState = "backoff"  // ended, will be started again
	WorkerStopping WorkerState = "stopping"
	WorkerStopped  WorkerState = "stopped"
	WorkerFailed   WorkerState = "failed" // ended too often, or cannot be started
)

// RoleStatus describes one role.
type RoleStatus struct {
	Name  string    `json:"name"`
	State RoleState `json:"state"`
	Why   string    `json:"why,omitempty"` // reason for held, vacant, starting; with what to type
	// Closing: it is being stopped for good, with the supervisor or because it
	// is no longer in the config.
	Closing      bool             `json:"closing,omitempty"`
	Leader       string           `json:"leader"` // worker name, empty if nobody leads
	LeaderPID    int              `json:"leader_pid"`
	Term         uint64           `json:"term"`
	Token        role.Token       `json:"token"`
	Epoch        uint64           `json:"epoch"`
	Workers      []WorkerStatus   `json:"workers"`
	Plugins      []PluginStatus   `json:"plugins"`
	Listen       []ListenStatus   `json:"listen,omitempty"`
	Protection   Protection       `json:"protection"`
	LastFailover *Record          `json:"last_failover"`
	Pause        *PauseStatus     `json:"pause"` // null if the role is not paused
	Budget       Budget           `json:"budget"`
	UnderWay     string           `json:"under_way,omitempty"`     // a scale, a reload or a rolling restart that changes its workers, and whom it waits for
	ReloadFailed string           `json:"reload_failed,omitempty"` // the last reload was undone, and why
	Segment      string           `json:"segment"`
	DroppedLines uint64           `json:"dropped_lines"`
	LogReader    *LogReaderStatus `json:"log_reader,omitempty"` // nil: the supervisor reads by itself

	hooks      []NamedHooks
	versions   []string // of the settings with which each worker was started
	hookErrors []string // last failure per hook, as the queue saw it
	hookHangs  []int    // calls that did not return in time, as the queue saw it

	comeback time.Duration // the longest wait for a standby that is started again
}

// Budget is how many failovers a role may have within a time, and has had. What
// an operator asked for does not count. While Spent is all of them, the role is
// held: whoever leads goes on, and nobody takes over before Until.
type Budget struct {
	Failovers int        `json:"failovers"`
	Per       string     `json:"per"`
	Spent     int        `json:"spent"`
	HeldUntil *time.Time `json:"held_until"` // null if the role is not held
}

// WorkerStatus describes one worker. Wanted and observed are kept apart: PID
// is 0 when no process exists.
type WorkerStatus struct {
	Name      string      `json:"name"`
	PID       int         `json:"pid"`
	State     WorkerState `json:"state"`
	Ready     bool        `json:"ready"`    // it could lead: ready, in its seat, and its last beat is within grace
	Restarts  int         `json:"restarts"` // starts after ends that nobody asked for
	StartedAt *time.Time  `json:"started_at"`
	LastExit  *Exit       `json:"last_exit"`
	Outdated  bool        `json:"outdated,omitempty"` // it was started with earlier settings than those of the config
	// Behind is how many epochs old its last beat is: 0 or 1 in health, as a
	// beat may fall just after a tick. Null before it has joined its segment.
	Behind *int64 `json:"behind"`
	Why    string `json:"why,omitempty"` // reason for backoff, failed, starting
	// RetryAt is when a worker without a process is started next; null if it
	// has one, or waits for something else than a time.
	RetryAt *time.Time `json:"retry_at"`
	// StaysStopped: it was stopped by hand or by the role's restart policy, and
	// nothing but a start by hand, or another supervisor, starts it.
	StaysStopped bool `json:"stays_stopped,omitempty"`
	// Unseated: its program has said 5 s ago or earlier that it is ready, and has
	// taken no seat in its segment: it never leads.
	Unseated bool `json:"unseated,omitempty"`
	// What the process says of itself by sd_notify.
	Status    string `json:"status,omitempty"`    // STATUS=
	Reloading bool   `json:"reloading,omitempty"` // RELOADING=1, until READY=1
	Leaving   bool   `json:"leaving,omitempty"`   // STOPPING=1
	Errno     int    `json:"errno,omitempty"`     // ERRNO=
	MainPID   int    `json:"main_pid,omitempty"`  // MAINPID=, a process of the worker
	// Health is what the health probe has found; null without one, or before
	// its first answer.
	Health *HealthStatus `json:"health"`
	// LastSignal is the last one that was sent to end the present process.
	LastSignal string `json:"last_signal,omitempty"`

	up bool // ready, be it of use or not
}

// HealthStatus is the state of a worker's health probe.
type HealthStatus struct {
	Healthy  bool   `json:"healthy"`
	Failures int    `json:"failures"`        // in a row
	Error    string `json:"error,omitempty"` // of the last failed try
}

// Exit says how a process ended. Code is null if a signal ended it or if
// nobody could tell (an adopted worker on an older kernel).
type Exit struct {
	At     time.Time `json:"at"`
	PID    int       `json:"pid"`
	Code   *int      `json:"code"`
	Signal string    `json:"signal,omitempty"`
	Error  string    `json:"error,omitempty"` // it could not be started at all
	Cause  string    `json:"cause,omitempty"` // why standbyd ended it: its health, or its watchdog
	// LastLines are the last lines of its output, at most 10.
	LastLines []string `json:"last_lines,omitempty"`
}

// PluginStatus is one hook of the role.
type PluginStatus struct {
	Name string `json:"name"`
	HookStatus
}

// LogReaderStatus describes the process that reads what the workers print.
type LogReaderStatus struct {
	PID       int    `json:"pid"` // 0: there is none right now
	Restarts  int    `json:"restarts"`
	LastError string `json:"last_error,omitempty"`
}

// ListenStatus is one socket held for the role.
type ListenStatus struct {
	Name    string `json:"name"`
	Network string `json:"network"`
	Address string `json:"address"` // as bound: a port 0 is replaced
}

// Protection says what guards the role on this machine right now, and what is
// missing.
type Protection struct {
	Detect  []string `json:"detect"` // ways a leader's death is noticed, first one first: "robust", "pidfd", "tick"
	Proof   Proof    `json:"proof"`
	Fence   Fence    `json:"fence"`
	Gate    bool     `json:"gate"`
	Missing []string `json:"missing"`
}
