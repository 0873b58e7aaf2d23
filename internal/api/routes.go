package api

import (
	"net/http"

	"github.com/standbyd/standbyd/supervisor"
)

// route is one call of the interface: what serves it, and what the OpenAPI
// document says of it.
type route struct {
	method, path, summary string
	handler               func(*Server) http.HandlerFunc // nil: this server has none
	query                 []parameter
	request, response     any  // a value of the type; nil: none
	stream                bool // the answer is JSON lines of that type, or server-sent events of GET /v1/events
}

type parameter struct {
	name, doc string
	required  bool
	kind      string // "string", "integer", "boolean"
}

var targetParameter = parameter{"target", "a worker: kv/0, kv-0 or kv/leader", true, "string"}

// routes are all calls but the probes and the document itself.
var routes = []route{
	{"GET", "/v1/status", "The whole visible state.", func(s *Server) http.HandlerFunc { return s.status },
		[]parameter{{"role", "of this role only", false, "string"},
			{"table", "plain or colour: the answer is a text for people, as standbyd status prints it", false, "string"}},
		nil, supervisor.Snapshot{}, false},
	{"GET", "/v1/history", "Changes of leader, oldest first.", func(s *Server) http.HandlerFunc { return s.history },
		[]parameter{{"role", "of this role only", false, "string"}}, nil, []supervisor.Record{}, false},
	{"GET", "/v1/events", "Events as server-sent events: their id is the event's, their data an Event.", func(s *Server) http.HandlerFunc { return s.events },
		[]parameter{{"n", "the last n of the past ones", false, "integer"}, {"after", "those after this id", false, "integer"},
			{"follow", "and all that come", false, "boolean"}}, nil, supervisor.Event{}, true},
	{"GET", "/v1/pid", "Which process a target is.", func(s *Server) http.HandlerFunc { return s.pid },
		[]parameter{targetParameter}, nil, Process{}, false},
	{"GET", "/v1/logs", "Where the logs of a role or a worker are.", func(s *Server) http.HandlerFunc { return s.logs },
		[]parameter{{"target", "a role or a worker", true, "string"}}, nil, []LogFile{}, false},
	{"GET", "/v1/deaths", "The last deaths of a worker, oldest first.", func(s *Server) http.HandlerFunc { return s.deaths },
		[]parameter{targetParameter}, nil, Deaths{}, false},
	{"GET", "/v1/candidates", "Whom a switchover would choose, and why each other worker not.", func(s *Server) http.HandlerFunc { return s.candidates },
		[]parameter{{"role", "the role", true, "string"}, {"to", "the worker that is named", false, "string"}}, nil, supervisor.Ranking{}, false},

	{"POST", "/v1/signal", "Send a signal to the process of a worker.", func(s *Server) http.HandlerFunc { return s.signal }, nil, SignalRequest{}, SignalSent{}, false},
	{"POST", "/v1/drill", "Break the leader and measure; a line when the fault was caused, one for each record, one when the next round has to wait, and one at the end.",
		func(s *Server) http.HandlerFunc { return s.drill }, nil, DrillRequest{}, drillLine{}, true},
	{"POST", "/v1/switchover", "Let another worker lead, after the leader has drained.",
		func(s *Server) http.HandlerFunc { return s.change(s.backend.Switchover) }, nil, ChangeRequest{}, supervisor.Record{}, false},
	{"POST", "/v1/failover", "Let another worker lead, by force.",
		func(s *Server) http.HandlerFunc { return s.change(s.backend.Failover) }, nil, ChangeRequest{}, supervisor.Record{}, false},
	{"POST", "/v1/pause", "Keep a role, or all, from changing its leader by itself.", func(s *Server) http.HandlerFunc { return s.pause },
		nil, PauseRequest{}, []supervisor.PauseStatus{}, false},
	{"POST", "/v1/resume", "End a pause; answers with the names of the roles.", func(s *Server) http.HandlerFunc { return s.resume },
		nil, ResumeRequest{}, []string{}, false},
	{"POST", "/v1/ack", "Free a role that is held.", func(s *Server) http.HandlerFunc { return s.ack }, nil, AckRequest{}, struct{}{}, false},
	{"POST", "/v1/start", "Start workers; answers when they are ready.",
		func(s *Server) http.HandlerFunc { return s.byHand("start", s.backend.Start) }, nil, HandRequest{}, []supervisor.WorkerStatus{}, false},
	{"POST", "/v1/stop", "Stop workers; answers when they are gone.",
		func(s *Server) http.HandlerFunc { return s.byHand("stop", s.backend.Stop) }, nil, HandRequest{}, []supervisor.WorkerStatus{}, false},
	{"POST", "/v1/restart", "Stop workers and start them again; answers when they are ready.",
		func(s *Server) http.HandlerFunc { return s.byHand("restart", s.backend.Restart) }, nil, HandRequest{}, []supervisor.WorkerStatus{}, false},
	{"POST", "/v1/roll", "Restart a role's workers one by one.", func(s *Server) http.HandlerFunc { return s.roll }, nil, RollRequest{}, changedAnswer[supervisor.Rolled]{}, false},
	{"POST", "/v1/scale", "Run another number of workers.", func(s *Server) http.HandlerFunc { return s.scale }, nil, ScaleRequest{}, changedAnswer[supervisor.Rolled]{}, false},
	{"POST", "/v1/reload", "Read the config file again, and apply what differs.", func(s *Server) http.HandlerFunc {
		if s.Reloader == nil {
			return nil
		}
		return s.reload
	}, nil, ReloadRequest{}, changedAnswer[supervisor.Reloaded]{}, false},
	{"POST", "/v1/shutdown", "Stop the daemon and all that it runs; a line when it begins and one when all is stopped.",
		func(s *Server) http.HandlerFunc { return s.shutdown }, nil, struct{}{}, Stopping{}, true},
}
