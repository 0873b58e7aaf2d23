package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/examples/kv/store"
)

// How a leader that is asked to stop treats its connections. Together they
// stay below the role's default drain_timeout of 5 s.
const (
	linger    = time.Second            // for the next request on a busy connection, which is told to be the last
	busy      = time.Second            // since a connection's last request; one that is idle for longer is just closed,
	settle    = 200 * time.Millisecond // but not while clients go through those that they keep: this long since the last request
	watch     = 20 * time.Millisecond  // how often that is looked at: who was away for half of settle may have missed one
	firstWait = time.Second            // for the first request on a connection just accepted; then it is one more idle one
	drainMost = 3 * time.Second        // for all of that, also if there is no end of requests
	answer    = time.Second            // after it, for requests under way
)

const usage = `a key-value store, one leader at a time

curl -X PUT --data-binary VALUE %[1]s/kv/KEY
curl %[1]s/kv/KEY
curl -X DELETE %[1]s/kv/KEY
curl %[1]s/status
`

// server answers HTTP under one leadership.
type server struct {
	worker string
	l      store.Leadership
	w      *store.Writer
	since  time.Time
	log    *log.Logger

	draining atomic.Bool
	mu       sync.Mutex
	conns    map[net.Conn]connection
	asked    time.Time     // when a request began last
	changed  chan struct{} // has a token after conns changed
}

type connection struct {
	state http.ConnState
	since time.Time
}

// serve accepts from ln until ctx ends or the store cannot be written any
// more. It then stops accepting, answers what has arrived, and closes every
// connection; ln's socket stays open with whoever else holds it, and what
// waits in its backlog is for the next leader.
func (s *server) serve(ctx context.Context, ln net.Listener) error {
	s.mu.Lock()
	s.conns, s.changed = map[net.Conn]connection{}, make(chan struct{}, 1)
	s.mu.Unlock()
	srv := &http.Server{
		Handler:           s,
		ConnState:         s.track,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          s.log,
	}
	failed := make(chan error, 1)
	accepted := make(chan struct{}) // whoever was, is tracked
	go func() {
		failed <- srv.Serve(ln)
		close(accepted)
	}()
	var err error
	select {
	case <-ctx.Done():
	case <-s.w.Broken():
		err = s.w.Err()
	case err = <-failed:
		err = fmt.Errorf("accept connections: %w", err)
	}
	s.draining.Store(true)
	ln.Close()
	<-accepted
	s.drain(srv)
	return err
}

// drain leaves the rest to Shutdown, which drops every request that it has not
// begun to answer by then: so whoever may still send one is waited for before.
func (s *server) drain(srv *http.Server) {
	began := time.Now()
	s.tellBusy(began)
	s.mu.Lock()
	for c, now := range s.conns {
		if now.state == http.StateNew {
			c.SetReadDeadline(time.Now()) // Shutdown would wait for it
		}
	}
	s.mu.Unlock()
	limit, cancel := context.WithDeadline(context.Background(), began.Add(drainMost+answer))
	defer cancel()
	if srv.Shutdown(limit) != nil {
		srv.Close()
	}
}

// tellBusy waits until every request that has come is answered, and every
// client that sends one after the other has heard of the end in an answer. One
// whose connection was closed between two requests may have sent the next
// already, and could not know what became of it. A client that has heard takes
// the next connection that it keeps, even one that was idle for long, or that
// it has opened and not used yet.
func (s *server) tellBusy(began time.Time) {
	limit := time.NewTimer(drainMost)
	defer limit.Stop()
	look := time.NewTicker(watch)
	defer look.Stop()
	var blind time.Time
	looked := began
	for {
		now := time.Now()
		if now.Sub(looked) > settle/2 {
			blind = now // this process was not there to see what came
		}
		looked = now
		u := s.untold(began.Add(-busy), now.Add(-firstWait))
		enough := later(blind, u.asked).Add(settle)
		if u.between > 0 {
			enough = later(enough, began.Add(linger))
		}
		if u.under == 0 && (u.idle == 0 || !now.Before(enough)) {
			return
		}
		select {
		case <-s.changed:
		case <-look.C:
		case <-limit.C:
			return
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// untold is who has not heard of the end. Who has is closed with the answer.
type untold struct {
	under   int       // connections under a request, or before their first
	idle    int       // between two requests, or without any for long
	between int       // of those, the ones that were busy lately
	asked   time.Time // when the last request began
}

// untold counts as busy what had a request after then, and as idle what was
// opened before old and had none.
func (s *server) untold(then, old time.Time) untold {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := untold{asked: s.asked}
	for _, now := range s.conns {
		switch {
		case now.state == http.StateNew && now.since.Before(old):
			u.idle++
		case now.state != http.StateIdle:
			u.under++
		case now.since.After(then):
			u.between++
			fallthrough
		default:
			u.idle++
		}
	}
	return u
}

func (s *server) track(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(s.conns, c)
	} else {
		s.conns[c] = connection{state, time.Now()}
	}
	if state == http.StateActive {
		s.asked = time.Now()
	}
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// ServeHTTP does without http.ServeMux, which would redirect keys that look
// like unclean paths.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.announceEnd(w)
	w.Header().Set("Kv-Token", s.l.Token().String())
	key, isKey := strings.CutPrefix(r.URL.Path, "/kv/")
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case isKey && (key == "" || len(key) > store.MaxKey):
		http.Error(w, fmt.Sprintf("the key has %d bytes, must have 1 to %d", len(key), store.MaxKey), http.StatusBadRequest)
	case isKey && read:
		s.get(w, r, key)
	case isKey && r.Method == http.MethodPut:
		s.put(w, r, key)
	case isKey && r.Method == http.MethodDelete:
		s.confirm(w, s.w.Delete(r.Context(), key))
	case isKey:
		w.Header().Set("Allow", "GET, HEAD, PUT, DELETE")
		http.Error(w, "a key can be read (GET), written (PUT) and removed (DELETE)", http.StatusMethodNotAllowed)
	case r.URL.Path == "/status" && read:
		s.status(w)
	case r.URL.Path == "/" && read:
		fmt.Fprintf(w, usage, r.Host)
	default:
		http.Error(w, "there is only /kv/KEY and /status", http.StatusNotFound)
	}
}

func (s *server) get(w http.ResponseWriter, r *http.Request, key string) {
	value, ok, err := s.w.Get(key)
	switch {
	case err != nil:
		s.unavailable(w, "not read: "+err.Error())
	case !ok:
		http.Error(w, "no such key", http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.Itoa(len(value)))
		if r.Method == http.MethodGet {
			w.Write(value)
		}
	}
}

func (s *server) put(w http.ResponseWriter, r *http.Request, key string) {
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, store.MaxValue))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, fmt.Sprintf("the value is larger than %d bytes", store.MaxValue), http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, "the value did not arrive: "+err.Error(), http.StatusBadRequest)
	default:
		s.confirm(w, s.w.Put(r.Context(), key, value))
	}
}

// confirm answers a write. 204 is a promise: the write is on disk, and every
// later leader has it.
func (s *server) confirm(w http.ResponseWriter, err error) {
	s.announceEnd(w) // draining may have begun since the request came
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, store.ErrLimit):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, store.ErrFull):
		http.Error(w, "not written: "+err.Error(), http.StatusInsufficientStorage)
	case errors.Is(err, store.ErrUnconfirmed):
		s.unavailable(w, "not confirmed: the write may or may not be stored; read it back, or repeat it: "+err.Error())
	default:
		s.unavailable(w, "not written; repeat it: "+err.Error())
	}
}

// announceEnd tells the client that this connection takes no further request.
func (s *server) announceEnd(w http.ResponseWriter) {
	if s.draining.Load() {
		w.Header().Set("Connection", "close")
	}
}

// unavailable sends the client to whoever leads by then: on a new connection,
// which waits in the backlog if nobody does.
func (s *server) unavailable(w http.ResponseWriter, text string) {
	w.Header().Set("Connection", "close")
	http.Error(w, text, http.StatusServiceUnavailable)
}

// status is the answer to GET /status.
type status struct {
	Worker  string       `json:"worker"`
	PID     int          `json:"pid"`
	Leader  bool         `json:"leader"` // always true: nobody else answers
	Token   role.Token   `json:"token"`
	Term    uint64       `json:"term"`
	Since   time.Time    `json:"since"`
	Keys    int          `json:"keys"`
	Journal store.Status `json:"journal"`
}

func (s *server) status(w http.ResponseWriter) {
	j := s.w.Status()
	if err := s.l.Check(); err != nil {
		s.unavailable(w, "not the leader: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(status{
		Worker: s.worker, PID: os.Getpid(), Leader: true,
		Token: s.l.Token(), Term: s.l.Token().Term(), Since: s.since,
		Keys: j.Keys, Journal: j,
	})
}
