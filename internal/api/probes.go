package api

import (
	"fmt"
	"net/http"

	"github.com/standbyd/standbyd/supervisor"
)

// probes adds what load balancers and monitors ask: 200 if it is so and 503 if
// not, to GET and HEAD. A role that does not exist is a 404, and a parameter
// that is not meant there a 400, for the answer would be to another question.
//
//	/leader?role=kv               somebody leads kv
//	/leader?role=kv&worker=kv-0   kv-0 leads it
//	/standby?role=kv[&worker=W]   there is a ready standby; W is one
//	/ready[?role=kv]              every role, or this one, is led
//	/live                         the daemon answers
//	/metrics                      Prometheus metrics
func (s *Server) probes(mux *http.ServeMux) {
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) { verdict(w, true, "standbyd answers") })
	role, worker := parameter{"role", "the role", false, "string"}, parameter{"worker", "the worker", false, "string"}
	mux.HandleFunc("GET /ready", asked([]parameter{role}, s.ready))
	mux.HandleFunc("GET /leader", asked([]parameter{role, worker}, s.probe(supervisor.WorkerLeader, "leads")))
	mux.HandleFunc("GET /standby", asked([]parameter{role, worker}, s.probe(supervisor.WorkerStandby, "stands by")))
	if s.Metrics != nil {
		mux.Handle("GET /metrics", s.Metrics)
	}
}

// Probes answers the probes alone, for a listener that everybody on this
// machine may reach.
func (s *Server) Probes() http.Handler {
	mux := http.NewServeMux()
	s.probes(mux)
	return told(mux)
}

func verdict(w http.ResponseWriter, yes bool, format string, args ...any) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !yes {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, format+"\n", args...)
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	only := r.URL.Query().Get("role")
	found := only == ""
	for _, role := range s.backend.Snapshot().Roles {
		if only != "" && role.Name != only {
			continue
		}
		found = true
		if role.Leader == "" {
			verdict(w, false, "%s is %s", role.Name, role.State)
			return
		}
	}
	if !found {
		fail(w, fmt.Errorf("%w: %s", supervisor.ErrNoRole, only))
		return
	}
	verdict(w, true, "ready")
}

// probe asks whether a worker, or any worker of the role, is in a state.
func (s *Server) probe(state supervisor.WorkerState, word string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, worker := r.URL.Query().Get("role"), r.URL.Query().Get("worker")
		roles := s.backend.Snapshot().Roles
		if name == "" && len(roles) == 1 {
			name = roles[0].Name
		}
		if name == "" {
			fail(w, badRequest(fmt.Sprintf("say which role: %s?role=NAME", r.URL.Path)))
			return
		}
		for _, role := range roles {
			if role.Name != name {
				continue
			}
			known, but := worker == "", ""
			for _, one := range role.Workers {
				if worker != "" && one.Name != worker {
					continue
				}
				known = true
				if one.State == state && state == supervisor.WorkerStandby && !one.Ready {
					if but == "" {
						but = fmt.Sprintf(": %s %s", one.Name, one.Why)
					}
					continue
				}
				if one.State == state {
					verdict(w, true, "%s %s", one.Name, word)
					return
				}
			}
			if !known {
				fail(w, fmt.Errorf("%w: %s has no worker %s", supervisor.ErrNoWorker, name, worker))
				return
			}
			verdict(w, false, "%s: nobody %s%s", name, word, but)
			return
		}
		fail(w, fmt.Errorf("%w: %s", supervisor.ErrNoRole, name))
	}
}
