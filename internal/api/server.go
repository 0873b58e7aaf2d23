package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/supervisor"
)

const (
	maxRequest   = 64 << 10
	headerLimit  = 5 * time.Second
	keepAlive    = 15 * time.Second // how soon a follower that is gone is noticed
	farewellTime = 2 * time.Second  // for open answers when the server ends
)

// Server answers requests for one supervisor.
type Server struct {
	backend Backend
	stop    func()
	stopped <-chan struct{}
	closing chan struct{}

	// Access is who may ask besides root and the daemon's own user. Set it
	// before Serve.
	Access Access
	// Reloader answers a reload. Nil: there is none. Set it before Serve.
	Reloader Reloader
	// Metrics answers GET /metrics. Nil: there are none. Set it before Serve.
	Metrics http.Handler
	// Table writes a snapshot for people. Nil: there are no tables. Set it before
	// Serve.
	Table func(w io.Writer, s supervisor.Snapshot, colour bool) error
	// Warn gets a line about each trouble with the control socket, in any
	// goroutine. Nil: nobody does. Set it before Serve.
	Warn func(string)
}

// NewServer makes a server. Stop is called by a shutdown request and must
// return at once; stopped is closed when the supervisor has stopped.
func NewServer(b Backend, stop func(), stopped <-chan struct{}) *Server {
	return &Server{backend: b, stop: stop, stopped: stopped, closing: make(chan struct{})}
}

// Serve answers on the listener until ctx ends, then lets open answers finish
// for a moment and closes the listener. A socket of [Listen] whose path is
// removed is bound again within a second or two. Call Serve once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{Handler: s.guarded(s.handler()), ReadHeaderTimeout: headerLimit, ConnContext: withPeer}
	type end struct {
		of  net.Listener
		err error
	}
	ended, next := make(chan end), make(chan net.Listener)
	quit, watched := make(chan struct{}), make(chan struct{})
	begin := func(l net.Listener) { go func() { ended <- end{l, h.Serve(l)} }() }
	tell := s.Warn
	if tell == nil {
		tell = func(string) {}
	}
	go func() {
		defer close(watched)
		watch(l, quit, func(l net.Listener) { next <- l }, tell)
	}()
	current, open := l, 1
	begin(l)
	var failed error
	for done := false; !done; {
		select {
		case e := <-ended:
			open--
			if e.of == current {
				failed, done = fmt.Errorf("serve the control socket: %w", e.err), true
			}
		case l := <-next:
			current.Close() // its path is not its own any more, and stays
			current = l
			begin(l)
			open++
		case <-ctx.Done():
			done = true
		}
	}
	close(quit)
	for done := false; !done; {
		select {
		case l := <-next:
			l.Close()
		case <-watched:
			done = true
		}
	}
	if failed == nil {
		close(s.closing)
		farewell, cancel := context.WithTimeout(context.Background(), farewellTime)
		defer cancel()
		if err := h.Shutdown(farewell); err != nil {
			h.Close()
		}
	}
	for current.Close(); open > 0; open-- {
		<-ended
	}
	return failed
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		if h := r.handler(s); h != nil {
			mux.HandleFunc(r.method+" "+r.path, asked(r.query, h))
		}
	}
	mux.HandleFunc("GET /v1/openapi.json", asked(nil, func(w http.ResponseWriter, _ *http.Request) { answer(w, document()) }))
	s.probes(mux)
	return told(mux)
}

// How a table is asked for.
const (
	tablePlain  = "plain"
	tableColour = "colour"
)

// status answers with a table where one is wanted: to make one here, where all
// that it takes is warm, is less work than to read a thousand workers' JSON in a
// process that has just begun.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	snapshot := s.backend.Snapshot()
	query := r.URL.Query()
	if name := query.Get("role"); name != "" {
		var err error
		if snapshot, err = snapshot.Only(name); err != nil {
			fail(w, err)
			return
		}
	}
	switch table := query.Get("table"); {
	case table == "":
		answer(w, snapshot)
	case s.Table == nil:
		fail(w, badRequest("table: there are no tables here"))
	case table == tablePlain, table == tableColour:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		s.Table(w, snapshot, table == tableColour)
	default:
		fail(w, badRequest(fmt.Sprintf("table: there is no %q; there is %s, %s", table, tablePlain, tableColour)))
	}
}

func (s *Server) history(w http.ResponseWriter, r *http.Request) {
	records, err := s.backend.History(r.URL.Query().Get("role"))
	if records == nil {
		records = []supervisor.Record{}
	}
	answerOr(w, records, err)
}

func (s *Server) pid(w http.ResponseWriter, r *http.Request) {
	role, worker, pid, err := s.backend.Resolve(r.URL.Query().Get("target"))
	answerOr(w, Process{role, worker, pid}, err)
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	sources, err := s.backend.LogSources(r.URL.Query().Get("target"))
	files := make([]LogFile, len(sources))
	for i, f := range sources {
		files[i] = LogFile{f.Name, f.File}
	}
	answerOr(w, files, err)
}

func (s *Server) deaths(w http.ResponseWriter, r *http.Request) {
	h, err := s.backend.DeathHistory(r.URL.Query().Get("target"))
	if h.Deaths == nil {
		h.Deaths = []supervisor.Death{}
	}
	answerOr(w, Deaths(h), err)
}

func (s *Server) signal(w http.ResponseWriter, r *http.Request) {
	request, ok := decode[SignalRequest](w, r)
	if !ok {
		return
	}
	sig, err := ParseSignal(request.Signal)
	if err != nil {
		fail(w, err)
		return
	}
	worker, pid, err := s.backend.Signal(r.Context(), request.Target, sig)
	answerOr(w, SignalSent{worker, pid, strings.TrimPrefix(unix.SignalName(sig), "SIG")}, err)
}

func (s *Server) ack(w http.ResponseWriter, r *http.Request) {
	if request, ok := decode[AckRequest](w, r); ok {
		answerOr(w, struct{}{}, s.backend.Ack(r.Context(), request.Role))
	}
}

type drillLine struct {
	Hit    *supervisor.DrillHit  `json:"hit,omitempty"`
	Record *supervisor.Record    `json:"record,omitempty"`
	Waits  *supervisor.DrillWait `json:"waits,omitempty"`
	Error  *failure              `json:"error,omitempty"`
	Done   bool                  `json:"done,omitempty"`
}

func (s *Server) drill(w http.ResponseWriter, r *http.Request) {
	request, ok := decode[DrillRequest](w, r)
	if !ok {
		return
	}
	interval, err := millis("interval_ms", request.IntervalMS)
	switch {
	case err != nil:
	case request.Count < 0:
		err = badRequest(fmt.Sprintf("count: %d rounds; at least 1, and 0 is 1", request.Count))
	case request.Fault != "" && !slices.Contains(supervisor.Faults, request.Fault):
		err = badRequest(fmt.Sprintf("fault: there is no %q; there is %v", request.Fault, supervisor.Faults))
	}
	if err != nil {
		fail(w, err)
		return
	}
	ctx, cancel := s.untilClosing(r.Context())
	defer cancel()
	out := newLines(w)
	_, err = s.backend.Drill(ctx, request.Role, supervisor.DrillOptions{
		Fault: request.Fault, Count: request.Count, Force: request.Force,
		Interval: interval,
		Hit:      func(hit supervisor.DrillHit) { out.line(drillLine{Hit: &hit}) },
		Waits:    func(wait supervisor.DrillWait) { out.line(drillLine{Waits: &wait}) },
	}, func(record supervisor.Record) { out.line(drillLine{Record: &record}) })
	switch {
	case err == nil:
		out.line(drillLine{Done: true})
	case !out.begun:
		fail(w, err)
	default:
		f, _ := failureOf(err)
		out.line(drillLine{Error: &f})
	}
}

func (s *Server) shutdown(w http.ResponseWriter, r *http.Request) {
	if !nothing(w, r) {
		return
	}
	out := newLines(w)
	out.line(Stopping{PID: os.Getpid()})
	s.stop()
	select {
	case <-s.stopped:
		out.line(Stopping{PID: os.Getpid(), Stopped: true})
	case <-r.Context().Done():
	}
}

// untilClosing ends a stream's context also when the server ends.
func (s *Server) untilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	finished := make(chan struct{})
	go func() {
		select {
		case <-s.closing:
			cancel(supervisor.ErrNotRunning)
		case <-finished:
		}
	}()
	return ctx, func() { close(finished); cancel(nil) }
}

// ParseSignal reads "TERM", "SIGTERM", "term" or "15". The error matches
// ErrBadRequest.
func ParseSignal(s string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n), nil
	}
	name := strings.ToUpper(s)
	if sig := unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG")); sig != 0 {
		return sig, nil
	}
	return 0, badRequest(fmt.Sprintf("there is no signal %q; write a name such as TERM or a number such as 15", s))
}

func answerOr(w http.ResponseWriter, v any, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, v)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}

func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("the request was given up: %w", err)
	}
	f, status := failureOf(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]failure{"error": f})
}

// lines writes JSON lines, each one sent at once.
type lines struct {
	w     http.ResponseWriter
	begun bool
}

func newLines(w http.ResponseWriter) *lines { return &lines{w: w} }

func (l *lines) line(v any) {
	if !l.begun {
		l.w.Header().Set("Content-Type", "application/x-ndjson")
		l.begun = true
	}
	json.NewEncoder(l.w).Encode(v)
	http.NewResponseController(l.w).Flush()
}
