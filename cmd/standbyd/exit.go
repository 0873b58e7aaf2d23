package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/internal/config"
	"github.com/standbyd/standbyd/supervisor"
)

// Exit codes, as docs/cli.md states them; append-only.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2 // usage, or a broken config
	exitNoDaemon = 3
	exitNoSuch   = 4 // role or worker
	exitSlow     = 5 // a round of a drill took longer than it may
	exitTimedOut = 99

	// Of lock, beside those of the command.
	exitLost       = 75
	exitTooLong    = 124
	exitOwnFailure = 125
	exitCannotRun  = 126
	exitNotFound   = 127
)

// exitStatus ends the program with a code of its own; err may be nil.
type exitStatus struct {
	code int
	err  error
}

func (e *exitStatus) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitStatus) Unwrap() error { return e.err }

// errTimedOut: what was waited for did not come in time.
var errTimedOut = errors.New("timed out")

// usageError is a mistake in the command line.
type usageError struct {
	msg string
}

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// codeOf is the exit code of an error.
func codeOf(err error) int {
	var usage *usageError
	var problems config.Problems
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.As(err, &problems), errors.Is(err, errConfig), errors.Is(err, api.ErrBadRequest):
		return exitUsage
	case errors.Is(err, api.ErrConfig):
		return exitUsage
	case errors.Is(err, errTimedOut), errors.Is(err, supervisor.ErrTimedOut): // also if the daemon is what did not come
		return exitTimedOut
	case errors.Is(err, api.ErrNoDaemon):
		return exitNoDaemon
	case errors.Is(err, supervisor.ErrNoRole), errors.Is(err, supervisor.ErrNoWorker):
		return exitNoSuch
	case errors.Is(err, api.ErrNoAnswer), errors.Is(err, context.DeadlineExceeded):
		return exitTimedOut
	}
	return exitFailed
}
