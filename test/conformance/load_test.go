//go:build linux

package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/programs"
)

// kv builds examples/kv, once, beside the program under test.
var kv = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(standbyd), "kv")
	return path, programs.Build(path, "examples/kv")
})

// load sends writes to a kv store at a fixed rate, whatever becomes of those
// before: who is slow gets more and more at once, as from many independent
// clients. No write is repeated: PUT is nothing that package net/http repeats
// by itself, so each failure is seen.
type load struct {
	t       *testing.T
	url     string
	keeping *http.Client // connections that stay open
	single  *http.Client // a connection for each request
	quit    chan struct{}
	all     sync.WaitGroup

	mu     sync.Mutex
	sent   int
	acked  []int               // numbers of the writes that were acknowledged
	served map[net.Conn]string // by connection: the token of who answered last on it
	killed map[string]span     // by token: when its leader was killed
	failed []failure

	starved []time.Time // when writes were sent that were overdue
}

// failure is one write that was not acknowledged.
type failure struct {
	began, ended time.Time
	conn         net.Conn // nil: there was none
	token        string   // of who answered on the connection before; "" if nobody
	status       int      // of the answer, 0 if there was none
	err          error
}

// overdue is how late a write is sent, or answered, on a machine that has no
// processor left: what a drain then cuts off is none of its faults, as it has a
// limit, and a connection that nobody uses for so long is closed.
const overdue = time.Second

// overloaded tells whether the write failed on such a machine.
func (l *load) overloaded(f failure) bool {
	return f.ended.Sub(f.began) > overdue || slices.ContainsFunc(l.starved, func(at time.Time) bool {
		return at.After(f.began.Add(-5*time.Second)) && at.Before(f.ended.Add(5*time.Second))
	})
}

// perConn is how many of the requests come on a connection of their own: one in so many.
const perConn = 20

// besideOthers lets a test with a load run at the same time as others, but in the
// long form, whose load takes most of a small machine.
func besideOthers(t *testing.T) {
	if os.Getenv("CONFORMANCE") == "" {
		t.Parallel()
	}
}

func newLoad(t *testing.T, url string, rate int) *load {
	l := &load{t: t, url: url, quit: make(chan struct{}), served: map[net.Conn]string{}, killed: map[string]span{},
		keeping: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: patience},
		single:  &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}}
	l.all.Go(func() {
		for n, began := 0, time.Now(); ; n++ {
			select {
			case <-l.quit:
				return
			case <-time.After(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate)))):
			}
			l.mu.Lock()
			if time.Since(began.Add(time.Duration(n)*time.Second/time.Duration(rate))) > overdue {
				l.starved = append(l.starved, time.Now())
			}
			l.sent++
			l.mu.Unlock()
			l.all.Go(func() { l.put(n) })
		}
	})
	t.Cleanup(l.end)
	return l
}

// end stops sending, and returns when everything is answered.
func (l *load) end() {
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	l.all.Wait()
	l.keeping.CloseIdleConnections()
}

func (l *load) put(n int) {
	f := failure{began: time.Now()}
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		l.mu.Lock()
		defer l.mu.Unlock()
		f.conn, f.token = i.Conn, l.served[i.Conn]
	}})
	req, err := http.NewRequestWithContext(ctx, "PUT", fmt.Sprintf("%s/kv/%d", l.url, n), strings.NewReader(fmt.Sprint(n)))
	if err != nil {
		panic(err)
	}
	client := l.keeping
	if n%perConn == 0 {
		client = l.single
	}
	res, err := client.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		f.status = res.StatusCode
	}
	f.ended, f.err = time.Now(), err
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && f.status == http.StatusNoContent {
		l.served[f.conn] = res.Header.Get("Kv-Token")
		l.acked = append(l.acked, n)
		return
	}
	l.failed = append(l.failed, f)
}

// kills says that the leader with this token is killed from now on, until what it
// returns is called: who asks for a failover does not know when in between.
func (l *load) kills(token string) (over func()) {
	began := time.Now()
	note := func(until time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.killed[token] = span{began, until}
	}
	note(began)
	return func() { note(time.Now()) }
}

// span is when something happened.
type span struct{ from, to time.Time }

// counts are the writes by what became of them.
type counts struct {
	sent, acked int
	refused     int // nobody took the connection
	inFlight    int // on a connection of a process that was killed
	reset       int // on a connection of a process that drained
	unavailable int // answered, with an error
	overloaded  int // cut off while the machine was overloaded
}

// judge sorts the failures. A connection belongs to who has answered on it
// before. One on which nobody has was accepted by a killed process only if it
// was under way at a kill.
func (l *load) judge() (c counts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.sent, c.acked = l.sent, len(l.acked)
	for _, f := range l.failed {
		kind := "reset by a drain"
		switch {
		case f.conn == nil || errors.Is(f.err, syscall.ECONNREFUSED):
			kind = "refused"
			c.refused++
		case f.status != 0:
			kind = "answered with an error"
			c.unavailable++
		case l.wasKilled(f):
			c.inFlight++
			continue
		case l.overloaded(f):
			c.overloaded++
			continue
		default:
			c.reset++
		}
		if c.refused+c.unavailable+c.reset <= 5 {
			l.t.Errorf("a write was %s: began %s, took %s, on a connection of %q: status %d, %v", kind, f.began.Format("15:04:05.000"), f.ended.Sub(f.began), f.token, f.status, f.err)
		}
	}
	return c
}

func (l *load) wasKilled(f failure) bool {
	if f.token != "" {
		_, ok := l.killed[f.token]
		return ok
	}
	for _, at := range l.killed {
		// It can have been sent while the kernel was ending the process.
		if f.began.Before(at.to.Add(time.Second)) && f.ended.After(at.from) {
			return true
		}
	}
	return false
}

// over ends the load and reads back every write that was acknowledged.
func (l *load) over() counts {
	l.t.Helper()
	l.end()
	c := l.judge()
	if c.overloaded > 0 {
		l.t.Logf("%d writes were cut off while this machine had no processor for them", c.overloaded)
	}
	if c.acked+c.refused+c.inFlight+c.reset+c.unavailable+c.overloaded != c.sent {
		l.t.Errorf("not every write is accounted for: %+v", c)
	}
	lost := 0
	var mu sync.Mutex
	var readers sync.WaitGroup
	for r := range 8 {
		readers.Go(func() {
			for i := r; i < len(l.acked); i += 8 {
				want := fmt.Sprint(l.acked[i])
				got := "nothing"
				res, err := l.keeping.Get(l.url + "/kv/" + want)
				if err == nil {
					b, _ := io.ReadAll(res.Body)
					res.Body.Close()
					got = string(b)
				}
				if got != want {
					mu.Lock()
					if lost++; lost <= 5 {
						l.t.Errorf("acknowledged write %s reads %q, %v", want, got, err)
					}
					mu.Unlock()
				}
			}
		})
	}
	readers.Wait()
	l.keeping.CloseIdleConnections()
	return c
}

// storeDaemon runs a kv role. The command is what the shell does before it
// becomes the store; more are further settings.
func storeDaemon(t *testing.T, before, more string) *daemon {
	t.Helper()
	program, err := kv()
	if err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, storeText(program, before, more))
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	return d
}

func storeText(program, before, more string) string {
	return fmt.Sprintf(`[role.kv]
command = ["/bin/sh", "-c", %q]
workers = 3
tick = "100ms"
grace = 100
fence_timeout = "30s"
failovers = 1000
burst = 1000
restart_delay = "20ms"
restart_max_delay = "100ms"
probation = "0s"
%s
[[role.kv.listen]]
name = "http"
address = "127.0.0.1:0"
`, before+"exec "+program+" --data $DIR/data", more)
}
