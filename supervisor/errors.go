package supervisor

import (
	"errors"
	"fmt"
	"time"
)

// What a caller asked for does not exist.
var (
	ErrNoRole   = errors.New("no such role")
	ErrNoWorker = errors.New("no such worker")
)

// What a caller asked for cannot be done right now.
var (
	ErrNoLeader   = errors.New("nobody leads the role")
	ErrNoStandby  = errors.New("no standby is ready to take over")
	ErrNoProcess  = errors.New("the worker has no process")
	ErrNotHeld    = errors.New("the role is not held")
	ErrBusy       = errors.New("something else is under way")
	ErrTimedOut   = errors.New("it took too long")
	ErrUnwatched  = errors.New("a hang of the leader's work would not be noticed")
	ErrNoTakeover = errors.New("nobody took over")
	ErrNotRunning = errors.New("the supervisor is not running")
)

// notAnyMore is an ErrNotRunning that says what ends: the supervisor, or a role
// of it.
type notAnyMore struct{ what string }

func (e *notAnyMore) Error() string { return e.what }

func (e *notAnyMore) Is(target error) bool { return target == ErrNotRunning }

var (
	errShutdown  = &notAnyMore{"the supervisor is being shut down: nothing is started or changed any more"}
	errDismissed = &notAnyMore{"the role is being stopped for good: it is no longer in the config"}
)

// ErrAlreadyRunning: another supervisor holds the state or runtime folder.
// The error that Run returns is an *AlreadyRunningError, which matches it.
var ErrAlreadyRunning = errors.New("another supervisor is running")

// AlreadyRunningError says who holds the folder. PID is 0 if it is not known.
type AlreadyRunningError struct {
	Folder string
	PID    int
	Since  time.Time // zero if not known
	Label  string    // its config file, if it told
}

func (e *AlreadyRunningError) Error() string {
	s := "another supervisor is running on " + e.Folder
	if e.PID != 0 {
		s += fmt.Sprintf(": pid %d", e.PID)
	}
	if !e.Since.IsZero() {
		s += ", since " + e.Since.Format(time.RFC3339)
	}
	if e.Label != "" {
		s += ", config " + e.Label
	}
	return s
}

func (e *AlreadyRunningError) Is(target error) bool { return target == ErrAlreadyRunning }

// ConfigError is a setting that cannot work. Field is spelled as the key in
// the config file: "grace", "listen[0].address", "runtime_dir".
type ConfigError struct {
	Role  string // empty for a setting of the supervisor itself
	Field string
	Msg   string
	Err   error // cause, if there is one
}

func (e *ConfigError) Error() string {
	s := e.Field + ": " + e.Msg
	if e.Role != "" {
		s = "role " + e.Role + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *ConfigError) Unwrap() error { return e.Err }
