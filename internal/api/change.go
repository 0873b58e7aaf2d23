package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/standbyd/standbyd/supervisor"
)

// The verbs that change who leads, or keep it from changing: both ends.

func (s *Server) candidates(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	ranking, err := s.backend.Candidates(r.Context(), query.Get("role"), query.Get("to"))
	answerOr(w, ranking, err)
}

func (s *Server) change(do func(ctx context.Context, role, to string) (supervisor.Record, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request, ok := decode[ChangeRequest](w, r)
		if !ok {
			return
		}
		ctx, cancel := s.untilClosing(r.Context())
		defer cancel()
		record, err := do(ctx, request.Role, request.To)
		answerOr(w, record, err)
	}
}

func (s *Server) pause(w http.ResponseWriter, r *http.Request) {
	request, ok := decode[PauseRequest](w, r)
	if !ok {
		return
	}
	length, err := millis("for_ms", request.ForMS)
	if err != nil {
		fail(w, err)
		return
	}
	paused, err := s.backend.Pause(r.Context(), request.Role, length)
	answerOr(w, paused, err)
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) {
	if request, ok := decode[ResumeRequest](w, r); ok {
		names, err := s.backend.Resume(r.Context(), request.Role)
		answerOr(w, names, err)
	}
}

// Candidates says whom a switchover would choose. An empty to: whoever is first.
func (c *Client) Candidates(ctx context.Context, role, to string) (r supervisor.Ranking, err error) {
	err = c.get(ctx, "candidates", url.Values{"role": {role}, "to": {to}}, &r)
	return r, err
}

// Switchover makes another worker lead, and returns when it does. It may take as
// long as the leader drains.
func (c *Client) Switchover(ctx context.Context, r ChangeRequest) (record supervisor.Record, err error) {
	err = c.patiently(ctx, "switchover", r, &record)
	return record, err
}

// Failover is Switchover by force.
func (c *Client) Failover(ctx context.Context, r ChangeRequest) (record supervisor.Record, err error) {
	err = c.patiently(ctx, "failover", r, &record)
	return record, err
}

// Pause returns the pauses that are in force now.
func (c *Client) Pause(ctx context.Context, r PauseRequest) (p []supervisor.PauseStatus, err error) {
	err = c.post(ctx, "pause", r, &p)
	return p, err
}

// Resume returns the names of the roles whose pause it has ended.
func (c *Client) Resume(ctx context.Context, role string) (names []string, err error) {
	err = c.post(ctx, "resume", ResumeRequest{role}, &names)
	return names, err
}
