package api

import (
	"context"
	"net/http"

	"github.com/standbyd/standbyd/supervisor"
)

// The verbs that start and stop workers: both ends.

// HandRequest asks for a start, a stop or a restart of a role or a worker.
type HandRequest struct {
	Target string `json:"target"`
	NoWait bool   `json:"no_wait,omitempty"` // answer when it has begun, with no workers
	// LimitMS is after how many milliseconds the wait is given up; 0: never.
	LimitMS int64 `json:"limit_ms,omitempty"`
}

func (s *Server) byHand(verb string, do func(ctx context.Context, target string) ([]supervisor.WorkerStatus, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request, ok := decode[HandRequest](w, r)
		if !ok {
			return
		}
		limit, err := millis("limit_ms", request.LimitMS)
		if err != nil {
			fail(w, err)
			return
		}
		ctx, cancel := s.untilClosing(r.Context())
		defer cancel()
		if limit > 0 {
			limited, stop := context.WithTimeoutCause(ctx, limit, supervisor.ErrTimedOut)
			defer stop()
			ctx = limited
		}
		if request.NoWait {
			answerOr(w, []supervisor.WorkerStatus{}, s.backend.Begin(ctx, verb, request.Target))
			return
		}
		workers, err := do(ctx, request.Target)
		answerOr(w, workers, err)
	}
}

// ByHand has "start", "stop" or "restart" done, and returns the workers as they
// are then; with NoWait at once, without them.
func (c *Client) ByHand(ctx context.Context, verb string, r HandRequest) (w []supervisor.WorkerStatus, err error) {
	err = c.patiently(ctx, verb, r, &w)
	return w, err
}
