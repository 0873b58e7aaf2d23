package api

import (
	"context"
	"net/http"

	"github.com/standbyd/standbyd/supervisor"
)

// The verbs that change what a role is made of: both ends.

// ReloadRequest asks the daemon to read its config file again.
type ReloadRequest struct {
	Plan bool `json:"plan,omitempty"` // only say what would be done
}

// ScaleRequest asks for another number of workers.
type ScaleRequest struct {
	Role    string `json:"role"`
	Workers int    `json:"workers"`
}

// RollRequest asks for a rolling restart.
type RollRequest struct {
	Role string `json:"role"`
}

// Reloader reads the daemon's config again: the plan alone, or all of it.
type Reloader interface {
	Plan(ctx context.Context) (supervisor.Reloaded, error)
	Reload(ctx context.Context) (supervisor.Reloaded, error)
}

// changedAnswer also has what was done when not all could be.
type changedAnswer[T any] struct {
	Done  T        `json:"done"`
	Error *failure `json:"error,omitempty"`
}

func answerChanged[T any](w http.ResponseWriter, done T, begun bool, err error) {
	if err != nil && !begun {
		fail(w, err)
		return
	}
	out := changedAnswer[T]{Done: done}
	if err != nil {
		f, _ := failureOf(err)
		out.Error = &f
	}
	answer(w, out)
}

func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	request, ok := decode[ReloadRequest](w, r)
	if !ok {
		return
	}
	ctx, cancel := s.untilClosing(r.Context())
	defer cancel()
	do := s.Reloader.Reload
	if request.Plan {
		do = s.Reloader.Plan
	}
	done, err := do(ctx)
	answerChanged(w, done, len(done.Roles) > 0, err)
}

func (s *Server) scale(w http.ResponseWriter, r *http.Request) {
	request, ok := decode[ScaleRequest](w, r)
	if !ok {
		return
	}
	ctx, cancel := s.untilClosing(r.Context())
	defer cancel()
	done, err := s.backend.Scale(ctx, request.Role, request.Workers)
	answerChanged(w, done, done.Role != "", err)
}

func (s *Server) roll(w http.ResponseWriter, r *http.Request) {
	request, ok := decode[RollRequest](w, r)
	if !ok {
		return
	}
	ctx, cancel := s.untilClosing(r.Context())
	defer cancel()
	done, err := s.backend.RestartRolling(ctx, request.Role)
	answerChanged(w, done, done.Role != "", err)
}

// Reload makes the daemon read its config file again and apply what differs,
// or with plan only say what that would be. With an error the result is what
// was done all the same.
func (c *Client) Reload(ctx context.Context, plan bool) (supervisor.Reloaded, error) {
	return changed[supervisor.Reloaded](ctx, c, "reload", ReloadRequest{plan})
}

// Scale changes the number of workers of a role.
func (c *Client) Scale(ctx context.Context, role string, workers int) (supervisor.Rolled, error) {
	return changed[supervisor.Rolled](ctx, c, "scale", ScaleRequest{role, workers})
}

// RestartRolling restarts the workers of a role one by one.
func (c *Client) RestartRolling(ctx context.Context, role string) (supervisor.Rolled, error) {
	return changed[supervisor.Rolled](ctx, c, "roll", RollRequest{role})
}

func changed[T any](ctx context.Context, c *Client, path string, request any) (T, error) {
	var a changedAnswer[T]
	if err := c.patiently(ctx, path, request, &a); err != nil {
		return a.Done, err
	}
	if a.Error != nil {
		return a.Done, a.Error.err()
	}
	return a.Done, nil
}
