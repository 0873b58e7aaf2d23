package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// AnswerTimeout is how long a daemon may take to answer what needs no waiting.
const AnswerTimeout = 10 * time.Second

// ErrNoAnswer: the daemon is there and does not answer.
var ErrNoAnswer = errors.New("standbyd does not answer")

// limited ends with ErrNoAnswer after AnswerTimeout.
func (c *Client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(AnswerTimeout, func() { cancel(c.noAnswer()) })
	return ctx, func() { late.Stop(); cancel(nil) }
}

// noAnswer says who does not answer, and what to type if it is stopped.
func (c *Client) noAnswer() error {
	err := fmt.Errorf("%w within %v on %s", ErrNoAnswer, AnswerTimeout, c.socket)
	pid := int(c.listener.Load())
	if pid == 0 {
		return err
	}
	switch stopped, traced := proc.Stopped(pid); {
	case traced:
		return fmt.Errorf("%w: pid %d is held by a debugger", err, pid)
	case stopped:
		return fmt.Errorf("%w: pid %d is stopped (SIGSTOP?): kill -CONT %d", err, pid, pid)
	}
	return fmt.Errorf("%w: it is pid %d, and not stopped: it hangs, or the machine is very busy", err, pid)
}
