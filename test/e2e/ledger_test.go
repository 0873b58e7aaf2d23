//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// ledger is a set of clients that write all the time and remember what was
// acknowledged. A request that fails is repeated, as clients do: a connection
// that its leader took along may fail a request under way, and nothing else may.
type ledger struct {
	t      *testing.T
	url    string
	cancel context.CancelFunc
	ctx    context.Context
	all    sync.WaitGroup

	pause   time.Duration  // of each writer and reader after each of its rounds
	acked   []atomic.Int64 // by writer: how many of its keys are acknowledged
	refused atomic.Int64   // connections that nobody took
	failed  atomic.Int64   // requests that had to be repeated, for any reason
	slowest atomic.Int64   // nanoseconds from the first attempt to the acknowledgement
}

// write starts n writers against the kv store at url. Each writes its keys
// one after the other, and counts in a key of its own.
func write(t *testing.T, url string, n int) *ledger {
	ctx, cancel := context.WithCancel(context.Background())
	l := &ledger{t: t, url: url, ctx: ctx, cancel: cancel, pause: 10 * time.Millisecond, acked: make([]atomic.Int64, n)}
	if os.Getenv("SOAK") != "" {
		l.pause = 0 // nobody shares the machine with them
	}
	for i := range n {
		l.all.Go(func() { l.writer(i) })
		l.all.Go(func() { l.reader(i) })
	}
	t.Cleanup(func() { cancel(); l.all.Wait() })
	return l
}

// underLoad starts standbyd with a config of a kv role, waits until that is
// whole, and lets n writers write to it.
func underLoad(t *testing.T, config string, n int) (d *daemon, before roleStatus, l *ledger) {
	t.Helper()
	d = configure(t, config)
	d.start()
	before = d.whole("kv")
	return d, before, write(t, d.url, n)
}

func key(writer int, n int64) string { return fmt.Sprintf("w%d.%d", writer, n) }

func (l *ledger) writer(i int) {
	c := newClient()
	defer c.CloseIdleConnections()
	for n := int64(1); l.ctx.Err() == nil; n++ {
		began := time.Now()
		value := strconv.FormatInt(n, 10)
		if !l.put(c, key(i, n), value) || !l.put(c, fmt.Sprintf("counter%d", i), value) {
			return
		}
		l.acked[i].Store(n)
		if took := time.Since(began).Nanoseconds(); took > l.slowest.Load() {
			l.slowest.Store(took)
		}
		time.Sleep(l.pause)
	}
}

// put repeats one write until it is acknowledged, and returns false if the
// ledger was closed before.
func (l *ledger) put(c *http.Client, key, value string) bool {
	for l.ctx.Err() == nil {
		res, body, err := request(l.ctx, c, "PUT", l.url+"/kv/"+key, value)
		switch {
		case l.ctx.Err() != nil:
			return false
		case errors.Is(err, syscall.ECONNREFUSED):
			l.refused.Add(1)
			l.failed.Add(1)
			time.Sleep(time.Millisecond)
		case err != nil, res.StatusCode == http.StatusServiceUnavailable:
			l.repeat("PUT "+key, res, err)
		case res.StatusCode == http.StatusNoContent:
			return true
		default:
			l.t.Errorf("PUT %s: %s %s", key, res.Status, body)
			return false
		}
	}
	return false
}

// reader looks at the writer's counter: it must never show less than what was
// acknowledged before the look.
func (l *ledger) reader(i int) {
	c := newClient()
	defer c.CloseIdleConnections()
	for l.ctx.Err() == nil {
		before := l.acked[i].Load()
		res, body, err := request(l.ctx, c, "GET", fmt.Sprintf("%s/kv/counter%d", l.url, i), "")
		if errors.Is(err, syscall.ECONNREFUSED) {
			l.refused.Add(1)
		}
		if l.ctx.Err() == nil && (err != nil || res.StatusCode == http.StatusServiceUnavailable) {
			l.repeat(fmt.Sprintf("GET counter%d", i), res, err)
		}
		if err == nil && res.StatusCode == http.StatusOK {
			if got, err := strconv.ParseInt(string(body), 10, 64); err != nil || got < before {
				l.t.Errorf("stale read: counter %d is %q after %d was acknowledged", i, body, before)
				return
			}
		} else if err == nil && res.StatusCode == http.StatusNotFound && before > 0 {
			l.t.Errorf("stale read: counter %d is not there after %d was acknowledged", i, before)
			return
		}
		time.Sleep(max(l.pause, 2*time.Millisecond))
	}
}

// repeat counts a request that has to be repeated, and tells of the first ones.
func (l *ledger) repeat(what string, res *http.Response, err error) {
	switch n := l.failed.Add(1); {
	case n > 5:
	case err != nil:
		l.t.Logf("%s %s: %v", time.Now().UTC().Format("15:04:05.000"), what, err)
	default:
		l.t.Logf("%s %s: %s", time.Now().UTC().Format("15:04:05.000"), what, res.Status)
	}
}

// total is how many writes were acknowledged so far.
func (l *ledger) total() (n int64) {
	for i := range l.acked {
		n += l.acked[i].Load()
	}
	return n
}

// more waits until every writer has got n further writes acknowledged.
func (l *ledger) more(n int64) {
	l.t.Helper()
	from := make([]int64, len(l.acked))
	for i := range l.acked {
		from[i] = l.acked[i].Load()
	}
	deadline := time.Now().Add(patience)
	for i := range l.acked {
		for l.acked[i].Load() < from[i]+n {
			if time.Now().After(deadline) || l.t.Failed() {
				l.t.Fatalf("writer %d got %d writes acknowledged within %s, want %d more", i, l.acked[i].Load()-from[i], patience, n)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// close stops the writers and looks for everything that was acknowledged.
func (l *ledger) close() {
	l.t.Helper()
	l.cancel()
	l.all.Wait()
	if l.total() == 0 {
		l.t.Error("nothing was acknowledged at all")
	}
	if n := l.refused.Load(); n != 0 {
		l.t.Errorf("%d connections were refused", n)
	}
	l.verify()
	l.t.Logf("%d writes acknowledged, %d requests repeated, slowest write took %s", l.total(), l.failed.Load(), time.Duration(l.slowest.Load()).Round(time.Millisecond))
}

// verify reads back everything that was acknowledged.
func (l *ledger) verify() {
	l.t.Helper()
	c := newClient()
	defer c.CloseIdleConnections()
	missing := 0
	for i := range l.acked {
		for n := int64(1); n <= l.acked[i].Load(); n++ {
			if got := l.read(c, key(i, n)); got != strconv.FormatInt(n, 10) {
				if missing++; missing <= 5 {
					l.t.Errorf("acknowledged write %s is %q", key(i, n), got)
				}
			}
		}
	}
	if missing > 0 {
		l.t.Errorf("%d acknowledged writes are lost", missing)
	}
}

// read gets one key from whoever leads.
func (l *ledger) read(c *http.Client, key string) string {
	l.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		res, body, err := request(context.Background(), c, "GET", l.url+"/kv/"+key, "")
		switch {
		case err == nil && res.StatusCode == http.StatusOK:
			return string(body)
		case err == nil && res.StatusCode == http.StatusNotFound:
			return "missing"
		case time.Now().After(deadline):
			l.t.Fatalf("GET %s: %v", key, err)
		}
	}
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: patience}
}

func request(ctx context.Context, c *http.Client, method, url, body string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, b, err
}
