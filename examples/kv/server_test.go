package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/examples/kv/store"
	"github.com/standbyd/standbyd/test/eventually"
)

// term is a leadership that ends when a later one begins.
type term struct {
	current *atomic.Uint64
	token   role.Token
}

func (l *term) Token() role.Token { return l.token }

func (l *term) Check() error {
	if l.current.Load() != uint64(l.token) {
		return errors.New("fenced")
	}
	return nil
}

// socket stands for what the supervisor holds: listen returns a new listener
// on it, as each leader gets one.
type socket struct {
	t    *testing.T
	held *net.TCPListener
	dir  string

	current atomic.Uint64
}

func newSocket(t *testing.T) *socket {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return &socket{t: t, held: ln.(*net.TCPListener), dir: t.TempDir()}
}

func (k *socket) url(path string) string { return "http://" + k.held.Addr().String() + path }

// lead starts the next leader; stop drains it and returns what serve returned.
func (k *socket) lead() (s *server, stop func() error) {
	k.t.Helper()
	f, err := k.held.File()
	if err != nil {
		k.t.Fatal(err)
	}
	defer f.Close()
	ln, err := net.FileListener(f)
	if err != nil {
		k.t.Fatal(err)
	}
	st, err := store.Open(k.dir, store.Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	l := &term{&k.current, role.Token(k.current.Add(1))}
	w, err := st.Lead(k.t.Context(), l)
	if err != nil {
		k.t.Fatal(err)
	}
	s = &server{worker: "kv-0", l: l, w: w, since: time.Now(), log: log.New(io.Discard, "", 0)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, ln) }()
	stop = sync.OnceValue(func() error {
		cancel()
		err := <-done
		w.Close()
		st.Close()
		return err
	})
	k.t.Cleanup(func() { stop() })
	return s, stop
}

func client(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 60 * time.Second}
}

func do(t *testing.T, c *http.Client, method, url, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestRoutes(t *testing.T) {
	k := newSocket(t)
	k.lead()
	c := client(t)
	for _, r := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/kv/a", "", 404, "no such key"},
		{"PUT", "/kv/a", "1", 204, ""},
		{"GET", "/kv/a", "", 200, "1"},
		{"HEAD", "/kv/a", "", 200, ""},
		{"PUT", "/kv/a/../b//c%2F%00", "odd key", 204, ""},
		{"GET", "/kv/a/../b//c%2F%00", "", 200, "odd key"},
		{"DELETE", "/kv/a", "", 204, ""},
		{"DELETE", "/kv/a", "", 204, ""},
		{"GET", "/kv/a", "", 404, "no such key"},
		{"PUT", "/kv/", "1", 400, "1 to 512"},
		{"PUT", "/kv/" + strings.Repeat("k", store.MaxKey), "", 204, ""},
		{"PUT", "/kv/" + strings.Repeat("k", store.MaxKey+1), "", 400, "1 to 512"},
		{"PUT", "/kv/large", strings.Repeat("x", store.MaxValue), 204, ""},
		{"PUT", "/kv/large", strings.Repeat("y", store.MaxValue+1), 413, "larger than 1048576"},
		{"GET", "/kv/large", "", 200, strings.Repeat("x", store.MaxValue)},
		{"POST", "/kv/a", "", 405, "GET"},
		{"GET", "/", "", 200, "/kv/KEY"},
		{"GET", "/other", "", 404, "/status"},
	} {
		res, body := do(t, c, r.method, k.url(r.path), r.body)
		if res.StatusCode != r.status || !strings.Contains(body, r.want) {
			t.Errorf("%s %.40s: %d %.200q, want %d %.200q", r.method, r.path, res.StatusCode, body, r.status, r.want)
		}
	}
	_, body := do(t, c, "GET", k.url("/status"), "")
	var st status
	if err := json.Unmarshal([]byte(body), &st); err != nil {
		t.Fatal(err)
	}
	if st.Worker != "kv-0" || !st.Leader || st.Token != 1 || st.Keys != 3 || st.Journal.Keys != 3 || st.Journal.Bytes == 0 {
		t.Errorf("status: %s", body)
	}
}

func TestFencedLeaderAnswers503(t *testing.T) {
	k := newSocket(t)
	_, stop := k.lead()
	c := client(t)
	do(t, c, "PUT", k.url("/kv/a"), "1")
	k.current.Add(1)
	for _, r := range [][3]string{{"GET", "/kv/a", "not read"}, {"GET", "/kv/none", "not read"}, {"GET", "/status", "not the leader"}} {
		res, body := do(t, c, r[0], k.url(r[1]), "")
		if res.StatusCode != 503 || !strings.Contains(body, r[2]) || !res.Close {
			t.Errorf("%s %s: %d %q close=%v", r[0], r[1], res.StatusCode, body, res.Close)
		}
	}
	res, body := do(t, c, "PUT", k.url("/kv/a"), "2")
	if res.StatusCode != 503 || !strings.Contains(body, "not written") || !res.Close {
		t.Errorf("PUT: %d %q", res.StatusCode, body)
	}
	// The writer has found out, so the server ends of its own.
	if err := stop(); err == nil {
		t.Error("serve returned nil")
	}
}

// A busy client with one connection, and leaders that hand over under it: no
// request fails, none is refused.
func TestHandoverUnderLoad(t *testing.T) {
	k := newSocket(t)
	_, stop := k.lead()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var sent atomic.Int64
	for i := range 4 {
		c := client(t)
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				req, _ := http.NewRequest("PUT", k.url(fmt.Sprintf("/kv/%d.%d", i, n)), bytes.NewReader([]byte("v")))
				res, err := c.Do(req)
				if err != nil {
					t.Errorf("client %d, request %d: %v", i, n, err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != 204 {
					t.Errorf("client %d, request %d: %s", i, n, res.Status)
					return
				}
				sent.Add(1)
			}
		})
	}
	for range 5 {
		for before := sent.Load(); sent.Load() < before+40 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		_, stop = k.lead()
	}
	cancel()
	clients.Wait()
	c := client(t)
	_, body := do(t, c, "GET", k.url("/status"), "")
	if want := fmt.Sprintf(`"keys": %d,`, sent.Load()); !strings.Contains(body, want) {
		t.Errorf("status is %s, want %s", body, want)
	}
}

func TestDrain(t *testing.T) {
	k := newSocket(t)
	s, stop := k.lead()

	idle := client(t)
	do(t, idle, "PUT", k.url("/kv/idle"), "1")
	silent, err := net.Dial("tcp", k.held.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	slow, err := net.Dial("tcp", k.held.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprintf(slow, "PUT /kv/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nsl")
	open := func() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.conns) }
	for open() < 3 {
		time.Sleep(time.Millisecond)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for !s.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	// A client that comes now waits for the next leader.
	late := make(chan int, 1)
	go func() {
		res, _ := do(t, client(t), "GET", k.url("/kv/slow"), "")
		late <- res.StatusCode
	}()
	fmt.Fprintf(slow, "ow")
	answer, err := io.ReadAll(slow)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 204") || !strings.Contains(string(answer), "Connection: close") {
		t.Errorf("slow request: %q %v", answer, err)
	}
	if n, err := silent.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("silent connection: %d %v", n, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	select {
	case code := <-late:
		t.Fatalf("the late client got %d from nobody", code)
	default:
	}
	k.lead()
	if code := <-late; code != 200 {
		t.Errorf("the late client got %d", code)
	}
	if res, _ := do(t, idle, "GET", k.url("/kv/idle"), ""); res.StatusCode != 200 {
		t.Errorf("the idle client got %s", res.Status)
	}
}

// The next request of a busy client may be under way when draining begins: it
// is answered, and told to be the last, also when it takes its time.
func TestDrainTellsBusyClients(t *testing.T) {
	k := newSocket(t)
	s, stop := k.lead()
	c, err := net.Dial("tcp", k.held.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	put := func() *http.Response {
		fmt.Fprintf(c, "PUT /kv/busy HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1")
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := put(); res.StatusCode != 204 || res.Close {
		t.Fatalf("%s, closed %t", res.Status, res.Close)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for !s.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(linger / 5)
	if res := put(); res.StatusCode != 204 || !res.Close {
		t.Errorf("%s, closed %t", res.Status, res.Close)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A client that keeps more connections than it needs goes through them as one
// after the other is told to be over, also through those that were idle for
// long: none of its requests meets one that is just being closed.
func TestDrainWithSpareConnections(t *testing.T) {
	for range 5 {
		k := newSocket(t)
		s, stop := k.lead()
		tr := &http.Transport{MaxIdleConnsPerHost: 100}
		c := &http.Client{Transport: tr, Timeout: 60 * time.Second}
		var failed atomic.Int64
		var all sync.WaitGroup
		put := func(i int) {
			req, _ := http.NewRequest("PUT", k.url(fmt.Sprintf("/kv/%d", i)), strings.NewReader("1"))
			res, err := c.Do(req)
			if err != nil {
				if failed.Add(1) < 4 {
					t.Errorf("request %d: %v", i, err)
				}
				return
			}
			res.Body.Close()
		}
		for i := range 60 { // at once, so that each has its own
			all.Go(func() { put(i) })
		}
		all.Wait()
		s.mu.Lock()
		for conn, now := range s.conns { // they were idle for long
			now.since = now.since.Add(-2 * busy)
			s.conns[conn] = now
		}
		s.mu.Unlock()
		end := make(chan struct{})
		sending := make(chan struct{})
		go func() {
			defer close(sending)
			for i := 100; ; i++ {
				select {
				case <-end:
					return
				case <-time.After(time.Millisecond):
				}
				all.Go(func() { put(i) })
			}
		}()
		for i := 0; i < 20; i++ {
			time.Sleep(time.Millisecond)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		k.lead() // who waits in the backlog
		close(end)
		<-sending
		all.Wait()
		tr.CloseIdleConnections()
	}
}

// TestDrainWithConnectionsNeverUsed: a client opens connections that it then
// does not need, and takes them as soon as the used ones have told the end.
func TestDrainWithConnectionsNeverUsed(t *testing.T) {
	const spare, pause = 30, 50 * time.Millisecond // together longer than firstWait
	round := func() (late bool, err error) {
		k := newSocket(t)
		s, stop := k.lead()
		var conns []net.Conn
		for range spare {
			c, err := net.Dial("tcp", k.held.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			conns = append(conns, c)
		}
		eventually.Shows(t, fmt.Sprintf("%d connections are accepted", spare), func() (bool, string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.conns) == spare, fmt.Sprint(len(s.conns))
		})
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		for !s.draining.Load() {
			time.Sleep(time.Millisecond)
		}
		for i, c := range conns {
			began := time.Now()
			fmt.Fprintf(c, "PUT /kv/%d HTTP/1.1\r\nHost: kv\r\nContent-Length: 1\r\n\r\n1", i)
			var res *http.Response
			if res, err = http.ReadResponse(bufio.NewReader(c), nil); err != nil {
				err = fmt.Errorf("request %d of %d: %w", i, spare, err)
				break
			}
			res.Body.Close()
			if !res.Close {
				t.Errorf("request %d was not told the end", i)
			}
			time.Sleep(pause)
			late = late || time.Since(began) > settle/2
		}
		if serr := <-stopped; serr != nil {
			t.Error(serr)
		}
		return late, err
	}
	for range 20 {
		late, err := round()
		if err == nil {
			return
		}
		if !late {
			t.Fatal(err)
		}
		t.Logf("%v: this machine had no processor for the client", err)
	}
}
