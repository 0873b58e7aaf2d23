package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/standbyd/standbyd/supervisor"
)

// Client talks to the daemon of one socket. It is safe for concurrent use.
type Client struct {
	socket   string
	http     *http.Client
	listener atomic.Int64 // pid at the other end of the last connection, 0 if not known
}

// NewClient makes a client; nothing is connected yet.
func NewClient(socket string) *Client {
	c := &Client{socket: socket}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, &dialError{explainDial(socket, err)}
		}
		c.listener.Store(int64(listenerOf(conn)))
		return conn, nil
	}
	// one connection per request: they are few, and the daemon may be replaced between two
	c.http = &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return c
}

// Socket returns the path that the client connects to.
func (c *Client) Socket() string { return c.socket }

// dialError passes through net/http, which wraps what a dial returns.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// Status returns the daemon's snapshot.
func (c *Client) Status(ctx context.Context) (s supervisor.Snapshot, err error) {
	return c.StatusOf(ctx, "")
}

// StatusOf returns the daemon's snapshot with one role, with all if role is "".
func (c *Client) StatusOf(ctx context.Context, role string) (s supervisor.Snapshot, err error) {
	err = c.get(ctx, "status", url.Values{"role": {role}}, &s)
	return s, err
}

// StatusTable returns StatusOf as the daemon sets it for people to read.
func (c *Client) StatusTable(ctx context.Context, role string, colour bool) ([]byte, error) {
	ctx, cancel := c.limited(ctx)
	defer cancel()
	table := tablePlain
	if colour {
		table = tableColour
	}
	body, err := c.stream(ctx, "GET", "status", url.Values{"role": {role}, "table": {table}}, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, c.cut(ctx, "status", err)
	}
	return text, nil
}

// History returns the records of a role, or of all if it is "", oldest first.
func (c *Client) History(ctx context.Context, role string) (r []supervisor.Record, err error) {
	err = c.get(ctx, "history", url.Values{"role": {role}}, &r)
	return r, err
}

// PID says which process a target such as kv/leader is.
func (c *Client) PID(ctx context.Context, target string) (p Process, err error) {
	err = c.get(ctx, "pid", url.Values{"target": {target}}, &p)
	return p, err
}

// Deaths returns the last deaths of a worker.
func (c *Client) Deaths(ctx context.Context, target string) (d Deaths, err error) {
	err = c.get(ctx, "deaths", url.Values{"target": {target}}, &d)
	return d, err
}

// Logs returns the log files of a target.
func (c *Client) Logs(ctx context.Context, target string) (f []LogFile, err error) {
	err = c.get(ctx, "logs", url.Values{"target": {target}}, &f)
	return f, err
}

// Signal sends a signal to a target and says which process got it.
func (c *Client) Signal(ctx context.Context, target, signal string) (s SignalSent, err error) {
	err = c.post(ctx, "signal", SignalRequest{target, signal}, &s)
	return s, err
}

// Ack ends the hold of a role.
func (c *Client) Ack(ctx context.Context, role string) error {
	return c.post(ctx, "ack", AckRequest{role}, &struct{}{})
}

// Drill causes failovers and tells of each as it goes. If ctx ends in the middle
// of a round, standbyd brings that one to its end and begins no other.
func (c *Client) Drill(ctx context.Context, r DrillRequest, p DrillProgress) error {
	body, err := c.streamPatiently(ctx, "POST", "drill", nil, r)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := json.NewDecoder(body)
	for {
		var line drillLine
		if err := lines.Decode(&line); err != nil {
			return c.cut(ctx, "drill "+r.Role, err)
		}
		switch {
		case line.Error != nil:
			return line.Error.err()
		case line.Hit != nil && p.Hit != nil:
			p.Hit(*line.Hit)
		case line.Record != nil && p.Record != nil:
			p.Record(*line.Record)
		case line.Waits != nil && p.Waits != nil:
			p.Waits(*line.Waits)
		case line.Done:
			return nil
		}
	}
}

// Shutdown asks the daemon to stop in order, calls begun with its pid, and
// returns when everything that it supervised has stopped.
func (c *Client) Shutdown(ctx context.Context, begun func(pid int)) error {
	body, err := c.streamPatiently(ctx, "POST", "shutdown", nil, struct{}{})
	if err != nil {
		return err
	}
	defer body.Close()
	lines := json.NewDecoder(body)
	for {
		var line Stopping
		if err := lines.Decode(&line); err != nil {
			return c.cut(ctx, "shutdown", err)
		}
		if line.Stopped {
			return nil
		}
		begun(line.PID)
	}
}

// cut explains a stream that ended too early.
func (c *Client) cut(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if what == "roll" {
		what = "restart --rolling"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("%s: standbyd ended before it was done; the next one does not go on with it: repeat it then", what)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (c *Client) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.call(ctx, "GET", path, query, nil, into)
}

func (c *Client) post(ctx context.Context, path string, request, into any) error {
	return c.call(ctx, "POST", path, nil, request, into)
}

// call is one request with one answer, within AnswerTimeout.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, request, into any) error {
	ctx, cancel := c.limited(ctx)
	defer cancel()
	body, err := c.stream(ctx, method, path, query, request)
	if err != nil {
		return err
	}
	return c.answer(ctx, path, body, into)
}

// patiently is post without a limit, for what takes its time.
func (c *Client) patiently(ctx context.Context, path string, request, into any) error {
	body, err := c.streamPatiently(ctx, "POST", path, nil, request)
	if err != nil {
		return err
	}
	return c.answer(ctx, path, body, into)
}

// streamPatiently is stream for what may take its time: nobody waits for a
// daemon that does not answer at all, and it does not carry out long afterwards
// what was given up.
func (c *Client) streamPatiently(ctx context.Context, method, path string, query url.Values, request any) (io.ReadCloser, error) {
	if err := c.alive(ctx); err != nil {
		return nil, err
	}
	return c.stream(ctx, method, path, query, request)
}

// alive is ErrNoAnswer if the daemon does not answer anything within
// AnswerTimeout: it is stopped, or hangs. Other faults are left to the request
// itself, which says them better.
func (c *Client) alive(ctx context.Context) error {
	limited, cancel := c.limited(ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, "GET", "http://standbyd/live", nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(r)
	if err == nil {
		return response.Body.Close()
	}
	if ctx.Err() == nil && limited.Err() != nil {
		return context.Cause(limited)
	}
	return nil
}

// answer reads the one value that a body has.
func (c *Client) answer(ctx context.Context, path string, body io.ReadCloser, into any) error {
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return c.cut(ctx, path, err)
	}
	return nil
}

// stream sends a request and returns the body of a good answer.
func (c *Client) stream(ctx context.Context, method, path string, query url.Values, request any) (io.ReadCloser, error) {
	if err := checkPath(c.socket); err != nil {
		return nil, err
	}
	var content io.Reader
	if request != nil {
		raw, err := json.Marshal(request)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://standbyd/v1/"+path+"?"+query.Encode(), content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	response, err := c.http.Do(r)
	if err != nil {
		var dial *dialError
		switch {
		case errors.As(err, &dial):
			return nil, dial.err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		return nil, c.cut(ctx, path, errors.Unwrap(err))
	}
	if response.StatusCode < 300 {
		return response.Body, nil
	}
	defer response.Body.Close()
	var failed struct{ Error failure }
	raw, _ := io.ReadAll(io.LimitReader(response.Body, maxRequest))
	if json.Unmarshal(raw, &failed) != nil || slices.Contains([]string{"", codeNoPath, codeBadMethod}, failed.Error.Code) {
		return nil, fmt.Errorf("%s: standbyd answered %s; is it another version?", path, response.Status)
	}
	return nil, failed.Error.err()
}

// EventsOptions say which events are wanted.
type EventsOptions struct {
	Last   int    // how many past ones; negative: all that are remembered
	After  uint64 // only those with a higher id
	Follow bool   // and those to come, until ctx ends
}

// Events calls each for every event. With Follow it returns nil when ctx ends
// and an error when the daemon goes away.
func (c *Client) Events(ctx context.Context, o EventsOptions, each func(supervisor.Event) error) error {
	query := url.Values{"follow": {strconv.FormatBool(o.Follow)}, "after": {strconv.FormatUint(o.After, 10)}}
	if o.Last >= 0 {
		query.Set("n", strconv.Itoa(o.Last))
	}
	body, err := c.streamPatiently(ctx, "GET", "events", query, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	err = readEvents(body, each)
	switch {
	case o.Follow && ctx.Err() != nil:
		return nil
	case errors.Is(err, io.EOF) && !o.Follow:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("events: %w: it has ended", ErrNoDaemon)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("events: %w", ErrNoAnswer)
	}
	return err
}
