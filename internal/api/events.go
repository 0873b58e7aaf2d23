package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/standbyd/standbyd/supervisor"
)

// events sends the last n events, or those after an id, and with follow all
// that come after them, without a gap and without a repetition.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	follow := query.Get("follow") == "true"
	ctx, cancel := s.untilClosing(r.Context())
	defer cancel()
	// Subscribed first: what happens between here and the look back is in both.
	var coming <-chan supervisor.Event
	if follow {
		coming = s.backend.Subscribe(ctx)
	}
	past := s.backend.RecentEvents()
	last := uint64(0)
	if len(past) > 0 {
		last = past[len(past)-1].ID
	}
	if after, err := strconv.ParseUint(query.Get("after"), 10, 64); err == nil {
		for len(past) > 0 && past[0].ID <= after {
			past = past[1:]
		}
	}
	if n, err := strconv.Atoi(query.Get("n")); err == nil && n >= 0 && n < len(past) {
		past = past[len(past)-n:]
	}

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	for _, e := range past {
		if writeEvent(w, e) != nil {
			return
		}
	}
	if out.Flush() != nil || !follow {
		return
	}
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		select {
		case e, ok := <-coming:
			if !ok {
				return
			}
			if e.ID <= last {
				continue
			}
			if writeEvent(w, e) != nil || len(coming) == 0 && out.Flush() != nil {
				return
			}
		case <-alive.C:
			if _, err := fmt.Fprint(w, ": still here\n\n"); err != nil || out.Flush() != nil {
				return
			}
		}
	}
}

func writeEvent(w http.ResponseWriter, e supervisor.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Type, body)
	return err
}
