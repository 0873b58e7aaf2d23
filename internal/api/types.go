package api

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/internal/capture"
	"github.com/standbyd/standbyd/supervisor"
)

// Backend is what the server serves: a *supervisor.Supervisor.
type Backend interface {
	Snapshot() supervisor.Snapshot
	Subscribe(ctx context.Context) <-chan supervisor.Event
	RecentEvents() []supervisor.Event
	History(role string) ([]supervisor.Record, error)
	Resolve(target string) (role, worker string, pid int, err error)
	Signal(ctx context.Context, target string, sig syscall.Signal) (worker string, pid int, err error)
	Drill(ctx context.Context, role string, o supervisor.DrillOptions, each func(supervisor.Record)) ([]supervisor.Record, error)
	Ack(ctx context.Context, role string) error
	Start(ctx context.Context, target string) ([]supervisor.WorkerStatus, error)
	Stop(ctx context.Context, target string) ([]supervisor.WorkerStatus, error)
	Restart(ctx context.Context, target string) ([]supervisor.WorkerStatus, error)
	Begin(ctx context.Context, verb, target string) error
	RestartRolling(ctx context.Context, role string) (supervisor.Rolled, error)
	Scale(ctx context.Context, role string, workers int) (supervisor.Rolled, error)
	Switchover(ctx context.Context, role, to string) (supervisor.Record, error)
	Failover(ctx context.Context, role, to string) (supervisor.Record, error)
	Candidates(ctx context.Context, role, to string) (supervisor.Ranking, error)
	Pause(ctx context.Context, role string, length time.Duration) ([]supervisor.PauseStatus, error)
	Resume(ctx context.Context, role string) ([]string, error)
	DeathHistory(target string) (supervisor.DeathHistory, error)
	LogSources(target string) ([]capture.Source, error)
}

var _ Backend = (*supervisor.Supervisor)(nil)

// Process names the process behind a target.
type Process struct {
	Role   string `json:"role"`
	Worker string `json:"worker"`
	PID    int    `json:"pid"`
}

// SignalRequest asks for a signal: a name with or without SIG, or a number.
type SignalRequest struct {
	Target string `json:"target"`
	Signal string `json:"signal"`
}

// SignalSent says which process got the signal.
type SignalSent struct {
	Worker string `json:"worker"`
	PID    int    `json:"pid"`
	Signal string `json:"signal"`
}

// DrillProgress is told what a drill does, as it does it; nil functions are allowed.
type DrillProgress struct {
	Hit    func(supervisor.DrillHit)  // the fault was caused
	Record func(supervisor.Record)    // the round is over
	Waits  func(supervisor.DrillWait) // the next one cannot begin yet
}

// DrillRequest asks for failovers. The zero value of each field is the
// supervisor's default.
type DrillRequest struct {
	Role       string           `json:"role"`
	Fault      supervisor.Fault `json:"fault"`
	Count      int              `json:"count"`
	IntervalMS int64            `json:"interval_ms"`
	Force      bool             `json:"force"`
}

// ChangeRequest asks for another leader, by switchover or failover.
type ChangeRequest struct {
	Role string `json:"role"`
	To   string `json:"to,omitempty"` // empty: the first in the order of candidates
}

// PauseRequest asks for a pause of a role, or of all if it is empty.
type PauseRequest struct {
	Role  string `json:"role,omitempty"`
	ForMS int64  `json:"for_ms,omitempty"` // 0: until resume
}

// ResumeRequest ends the pause of a role, or of all if it is empty.
type ResumeRequest struct {
	Role string `json:"role,omitempty"`
}

// AckRequest ends the hold of a role.
type AckRequest struct {
	Role string `json:"role"`
}

// Deaths are the last deaths of a worker, oldest first.
type Deaths struct {
	Worker string             `json:"worker"`
	Deaths []supervisor.Death `json:"deaths"`
	// Damaged counts the lines of their file that are none.
	Damaged int `json:"damaged,omitempty"`
}

// LogFile is one log of a role.
type LogFile struct {
	Name string `json:"name"`
	File string `json:"file"`
}

// Stopping is a line of the answer to a shutdown.
type Stopping struct {
	PID     int  `json:"pid"`
	Stopped bool `json:"stopped"`
}

// Error codes of the interface; append-only.
const (
	codeNoRole     = "no-role"
	codeNoWorker   = "no-worker"
	codeNoLeader   = "no-leader"
	codeNoStandby  = "no-standby"
	codeNoProcess  = "no-process"
	codeNotHeld    = "not-held"
	codeBusy       = "busy"
	codeTimedOut   = "timed-out"
	codeUnwatched  = "unwatched"
	codeNoTakeover = "no-takeover"
	codeNotRunning = "not-running"
	codeBadRequest = "bad-request"
	codeForbidden  = "forbidden"
	codeConfig     = "config"
	codeNoPath     = "no-path"
	codeBadMethod  = "bad-method"
	codeFailed     = "failed"
)

// ErrConfig: the config file that the daemon was asked to read is wrong.
var ErrConfig = errors.New("bad config")

// ErrBadRequest: the request itself makes no sense.
var ErrBadRequest = errors.New("bad request")

// What there is no handler for.
var (
	errNoPath    = errors.New("there is no such path")
	errBadMethod = errors.New("the path has no such method")
)

// badRequest is an ErrBadRequest whose text says enough by itself.
type badRequest string

func (e badRequest) Error() string      { return string(e) }
func (badRequest) Is(target error) bool { return target == ErrBadRequest }

// kinds pairs the errors that cross the socket with their codes and HTTP
// statuses, so that errors.Is works on the client's side too.
var kinds = []struct {
	code   string
	status int
	err    error
}{
	{codeNoRole, 404, supervisor.ErrNoRole},
	{codeNoWorker, 404, supervisor.ErrNoWorker},
	{codeNoLeader, 409, supervisor.ErrNoLeader},
	{codeNoStandby, 409, supervisor.ErrNoStandby},
	{codeNoProcess, 409, supervisor.ErrNoProcess},
	{codeNotHeld, 409, supervisor.ErrNotHeld},
	{codeTimedOut, 504, supervisor.ErrTimedOut},
	{codeBusy, 409, supervisor.ErrBusy},
	{codeUnwatched, 409, supervisor.ErrUnwatched},
	{codeNoTakeover, 504, supervisor.ErrNoTakeover},
	{codeNotRunning, 503, supervisor.ErrNotRunning},
	{codeBadRequest, 400, ErrBadRequest},
	{codeForbidden, 403, ErrForbidden},
	{codeConfig, 422, ErrConfig},
	{codeNoPath, 404, errNoPath},
	{codeBadMethod, 405, errBadMethod},
}

// failure is an error on the wire.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func failureOf(err error) (failure, int) {
	if bad := (*supervisor.ConfigError)(nil); errors.As(err, &bad) {
		return failure{codeConfig, err.Error()}, 422
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return failure{k.code, err.Error()}, k.status
		}
	}
	return failure{codeFailed, err.Error()}, 500
}

// remoteError is a failure that came back; it matches the sentinel of its code.
type remoteError struct {
	failure
	kind error
}

func (e *remoteError) Error() string { return e.Message }
func (e *remoteError) Unwrap() error { return e.kind }

func (f failure) err() error {
	for _, k := range kinds {
		if k.code == f.Code {
			return &remoteError{f, k.err}
		}
	}
	return &remoteError{f, nil}
}
