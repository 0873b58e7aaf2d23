package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corerole "github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/capture"
	"github.com/standbyd/standbyd/supervisor"
)

const patience = 30 * time.Second

// puppet is a backend that answers what the test says.
type puppet struct {
	mu      sync.Mutex
	recent  []supervisor.Event
	subs    []chan supervisor.Event
	err     error
	drilled supervisor.DrillOptions
}

func (p *puppet) emit(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := supervisor.Event{ID: id, Type: supervisor.EventWarning, Role: "kv", Text: "multi\nline"}
	p.recent = append(p.recent, e)
	for _, s := range p.subs {
		s <- e
	}
}

func (p *puppet) Snapshot() supervisor.Snapshot {
	return supervisor.Snapshot{Roles: []supervisor.RoleStatus{{Name: "kv", Leader: "kv-1", Workers: []supervisor.WorkerStatus{{Name: "kv-1"}},
		Plugins: []supervisor.PluginStatus{}, Protection: supervisor.Protection{Detect: []string{"tick"}, Missing: []string{}}}}}
}

func (p *puppet) Subscribe(ctx context.Context) <-chan supervisor.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := make(chan supervisor.Event, 1000)
	p.subs = append(p.subs, s)
	if n := len(p.recent); n > 0 { // this one is in both, as it may happen
		s <- p.recent[n-1]
	}
	return s
}

func (p *puppet) RecentEvents() []supervisor.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]supervisor.Event(nil), p.recent...)
}

func (p *puppet) History(role string) ([]supervisor.Record, error) {
	return []supervisor.Record{{Role: role, Term: 3}}, p.err
}

func (p *puppet) Resolve(target string) (role, worker string, pid int, err error) {
	return "kv", "kv-1", 41, p.err
}

func (p *puppet) Signal(_ context.Context, target string, sig syscall.Signal) (worker string, pid int, err error) {
	return "kv-1", int(sig), p.err
}

func (p *puppet) Drill(ctx context.Context, role string, o supervisor.DrillOptions, each func(supervisor.Record)) ([]supervisor.Record, error) {
	p.drilled = o
	for i := range o.Count {
		if i > 0 && o.Waits != nil {
			o.Waits(supervisor.DrillWait{Role: role, Round: i + 1, For: "kv-1 is starting"})
		}
		o.Hit(supervisor.DrillHit{Role: role, Term: uint64(i), ZeroMono: 5})
		each(supervisor.Record{Role: role, Term: uint64(i)})
	}
	return nil, p.err
}

func (p *puppet) change(verb, role, to string) (supervisor.Record, error) {
	if p.err != nil {
		return supervisor.Record{}, p.err
	}
	return supervisor.Record{Role: role, To: to, Reason: corerole.Reason(verb)}, nil
}

func (p *puppet) Switchover(_ context.Context, role, to string) (supervisor.Record, error) {
	return p.change("switchover", role, to)
}

func (p *puppet) Failover(_ context.Context, role, to string) (supervisor.Record, error) {
	return p.change("forced", role, to)
}

func (p *puppet) Candidates(_ context.Context, role, to string) (supervisor.Ranking, error) {
	return supervisor.Ranking{Role: role, To: to, Workers: []supervisor.Candidate{}}, p.err
}

func (p *puppet) Pause(_ context.Context, role string, length time.Duration) ([]supervisor.PauseStatus, error) {
	until := time.Unix(0, 0).Add(length)
	return []supervisor.PauseStatus{{Role: role, Until: &until}}, p.err
}

func (p *puppet) Resume(_ context.Context, role string) ([]string, error) {
	return []string{role}, p.err
}

func (p *puppet) Start(_ context.Context, target string) ([]supervisor.WorkerStatus, error) {
	return []supervisor.WorkerStatus{{Name: "start " + target}}, p.err
}

func (p *puppet) Stop(_ context.Context, target string) ([]supervisor.WorkerStatus, error) {
	return []supervisor.WorkerStatus{{Name: "stop " + target}}, p.err
}

func (p *puppet) Restart(_ context.Context, target string) ([]supervisor.WorkerStatus, error) {
	return []supervisor.WorkerStatus{{Name: "restart " + target}}, p.err
}

func (p *puppet) Begin(_ context.Context, verb, target string) error { return p.err }

func (p *puppet) RestartRolling(_ context.Context, role string) (supervisor.Rolled, error) {
	return supervisor.Rolled{Role: role, Started: []string{"kv-1"}, Stopped: []string{}, Left: []string{"kv-0"}}, p.err
}

func (p *puppet) Scale(_ context.Context, role string, n int) (supervisor.Rolled, error) {
	return supervisor.Rolled{Role: role, Started: make([]string, n), Stopped: []string{}, Left: []string{}}, p.err
}

func (p *puppet) Ack(context.Context, string) error { return p.err }

func (p *puppet) DeathHistory(target string) (supervisor.DeathHistory, error) {
	if target != "kv/1" {
		return supervisor.DeathHistory{}, supervisor.ErrNoWorker
	}
	return supervisor.DeathHistory{Worker: "kv-1", Deaths: []supervisor.Death{{PID: 9, Cause: "exit status 3", Lines: []string{"a"}}}, Damaged: 2}, nil
}

func (p *puppet) LogSources(target string) ([]capture.Source, error) {
	return []capture.Source{{Name: "kv-0", File: "/x/" + target}}, p.err
}

// serve starts a server for the puppet and returns a client and how to end it.
func serve(t *testing.T, p *puppet) (c *Client, end func(), asked <-chan struct{}) {
	t.Helper()
	path := filepath.Join(t.TempDir(), SocketName)
	l, err := Listen(path, Access{})
	if err != nil {
		t.Fatal(err)
	}
	stopping, stopped := make(chan struct{}), make(chan struct{})
	var once, ending sync.Once
	s := NewServer(p, func() { once.Do(func() { close(stopping) }) }, stopped)
	s.Table = func(w io.Writer, s supervisor.Snapshot, colour bool) error {
		_, err := fmt.Fprintf(w, "%s %v", s.Roles[0].Name, colour)
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	end = func() {
		ending.Do(func() {
			close(stopped)
			cancel()
			select {
			case err := <-served:
				if err != nil {
					t.Errorf("Serve: %v", err)
				}
			case <-time.After(patience):
				t.Error("Serve does not end")
			}
		})
	}
	t.Cleanup(end)
	return NewClient(path), end, stopping
}

func TestRoundTrips(t *testing.T) {
	p := &puppet{}
	c, _, _ := serve(t, p)
	ctx := t.Context()
	if s, err := c.Status(ctx); err != nil || s.Roles[0].Leader != "kv-1" {
		t.Errorf("Status: %+v, %v", s, err)
	}
	if s, err := c.StatusOf(ctx, "kv"); err != nil || len(s.Roles) != 1 || s.Roles[0].Leader != "kv-1" {
		t.Errorf("StatusOf kv: %+v, %v", s, err)
	}
	if s, err := c.StatusOf(ctx, ""); err != nil || len(s.Roles) != 1 {
		t.Errorf("StatusOf all: %+v, %v", s, err)
	}
	if _, err := c.StatusOf(ctx, "kw"); !errors.Is(err, supervisor.ErrNoRole) || !strings.Contains(err.Error(), "kv") {
		t.Errorf("StatusOf a role that is none: %v, want one that names kv", err)
	}
	if text, err := c.StatusTable(ctx, "kv", true); err != nil || string(text) != "kv true" {
		t.Errorf("StatusTable: %q, %v", text, err)
	}
	if text, err := c.StatusTable(ctx, "", false); err != nil || string(text) != "kv false" {
		t.Errorf("StatusTable: %q, %v", text, err)
	}
	if _, err := c.StatusTable(ctx, "kw", false); !errors.Is(err, supervisor.ErrNoRole) {
		t.Errorf("StatusTable of a role that is none: %v", err)
	}
	if r, err := c.History(ctx, "kv"); err != nil || len(r) != 1 || r[0].Role != "kv" || r[0].Term != 3 {
		t.Errorf("History: %+v, %v", r, err)
	}
	if x, err := c.PID(ctx, "kv/leader"); err != nil || x != (Process{"kv", "kv-1", 41}) {
		t.Errorf("PID: %+v, %v", x, err)
	}
	if x, err := c.Signal(ctx, "kv/1", "sigkill"); err != nil || x != (SignalSent{"kv-1", 9, "KILL"}) {
		t.Errorf("Signal: %+v, %v", x, err)
	}
	if x, err := c.Deaths(ctx, "kv/1"); err != nil || x.Worker != "kv-1" || x.Damaged != 2 || len(x.Deaths) != 1 || x.Deaths[0].Cause != "exit status 3" {
		t.Errorf("deaths: %+v, %v", x, err)
	}
	if _, err := c.Deaths(ctx, "kv/9"); !errors.Is(err, supervisor.ErrNoWorker) {
		t.Errorf("deaths of nobody: %v", err)
	}
	if x, err := c.Logs(ctx, "kv"); err != nil || !reflect.DeepEqual(x, []LogFile{{"kv-0", "/x/kv"}}) {
		t.Errorf("Logs: %+v, %v", x, err)
	}
	if err := c.Ack(ctx, "kv"); err != nil {
		t.Errorf("Ack: %v", err)
	}
	var told []string
	err := c.Drill(ctx, DrillRequest{Role: "kv", Fault: "stop", Count: 2, IntervalMS: 20, Force: true}, DrillProgress{
		Hit:    func(h supervisor.DrillHit) { told = append(told, fmt.Sprint("hit ", h.Term, h.ZeroMono)) },
		Record: func(r supervisor.Record) { told = append(told, fmt.Sprint("record ", r.Term)) },
		Waits:  func(w supervisor.DrillWait) { told = append(told, fmt.Sprint("waits ", w.Round, " ", w.For)) },
	})
	if err != nil || !reflect.DeepEqual(told, []string{"hit 0 5", "record 0", "waits 2 kv-1 is starting", "hit 1 5", "record 1"}) {
		t.Errorf("Drill: %q, %v", told, err)
	}
	if o := p.drilled; o.Fault != supervisor.FaultStop || o.Count != 2 || o.Interval != 20*time.Millisecond || !o.Force {
		t.Errorf("drilled with %+v", o)
	}
}

func TestErrorsCrossTheSocket(t *testing.T) {
	p := &puppet{}
	c, _, _ := serve(t, p)
	for _, kind := range []error{supervisor.ErrNoRole, supervisor.ErrNoWorker, supervisor.ErrNoLeader, supervisor.ErrNoStandby,
		supervisor.ErrNoProcess, supervisor.ErrNotHeld, supervisor.ErrBusy, supervisor.ErrUnwatched,
		supervisor.ErrNoTakeover, supervisor.ErrNotRunning, ErrBadRequest} {
		p.err = fmt.Errorf("told: %w", kind)
		_, err := c.PID(t.Context(), "x")
		if !errors.Is(err, kind) || err.Error() != p.err.Error() {
			t.Errorf("%v arrived as %v", p.err, err)
		}
	}
	p.err = errors.New("something else")
	if err := c.Ack(t.Context(), "x"); err == nil || err.Error() != "something else" {
		t.Errorf("another error arrived as %v", err)
	}
	if _, err := c.Signal(t.Context(), "kv/0", "NOSUCH"); !errors.Is(err, ErrBadRequest) {
		t.Errorf("an unknown signal: %v", err)
	}
	p.err = supervisor.ErrNoStandby
	rounds := 0
	if err := c.Drill(t.Context(), DrillRequest{Count: 2}, DrillProgress{Record: func(supervisor.Record) { rounds++ }}); !errors.Is(err, supervisor.ErrNoStandby) || rounds != 2 {
		t.Errorf("a drill that fails after two rounds: %v, %d rounds", err, rounds)
	}
	if err := c.Drill(t.Context(), DrillRequest{}, DrillProgress{}); !errors.Is(err, supervisor.ErrNoStandby) || rounds != 2 {
		t.Errorf("a drill that fails at once: %v", err)
	}
}

// TestEventsHaveNoGap: past and coming events join without a gap and without
// a repetition, also for what happens in between.
func TestEventsHaveNoGap(t *testing.T) {
	p := &puppet{}
	for id := range uint64(20) {
		p.emit(id + 1)
	}
	c, _, _ := serve(t, p)
	var ids []uint64
	if err := c.Events(t.Context(), EventsOptions{Last: -1}, func(e supervisor.Event) error { ids = append(ids, e.ID); return nil }); err != nil || len(ids) != 20 {
		t.Fatalf("all past events: %v, %v", ids, err)
	}
	ids = nil
	if err := c.Events(t.Context(), EventsOptions{Last: 5, After: 17}, func(e supervisor.Event) error { ids = append(ids, e.ID); return nil }); err != nil || !reflect.DeepEqual(ids, []uint64{18, 19, 20}) {
		t.Fatalf("events after 17: %v, %v", ids, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ids = nil
	err := c.Events(ctx, EventsOptions{Last: 3, Follow: true}, func(e supervisor.Event) error {
		ids = append(ids, e.ID)
		if e.Text != "multi\nline" {
			t.Errorf("text %q", e.Text)
		}
		switch e.ID {
		case 20:
			go func() {
				for id := range uint64(10) {
					p.emit(id + 21)
				}
			}()
		case 30:
			cancel()
		}
		return nil
	})
	if err != nil || len(ids) != 13 || ids[0] != 18 || ids[12] != 30 {
		t.Errorf("followed: %v, %v", ids, err)
	}
}

func TestFollowersLearnOfTheEnd(t *testing.T) {
	p := &puppet{}
	c, end, _ := serve(t, p)
	p.emit(1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := c.Events(ctx, EventsOptions{Last: -1, Follow: true}, func(supervisor.Event) error {
		go end()
		return nil
	})
	if !errors.Is(err, ErrNoDaemon) {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestShutdownWaitsForTheEnd(t *testing.T) {
	c, end, asked := serve(t, &puppet{})
	begun := false
	go func() {
		<-asked
		end()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Shutdown(ctx, func(pid int) { begun = pid > 0 }); err != nil || !begun {
		t.Errorf("Shutdown: %v, begun %t", err, begun)
	}
}

func TestParseSignal(t *testing.T) {
	for text, want := range map[string]syscall.Signal{"TERM": 15, "SIGTERM": 15, "term": 15, "9": 9, "Stop": syscall.SIGSTOP} {
		if got, err := ParseSignal(text); err != nil || got != want {
			t.Errorf("ParseSignal(%q) = %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "99", "SIG", "FOO", "TERM "} {
		if got, err := ParseSignal(text); !errors.Is(err, ErrBadRequest) {
			t.Errorf("ParseSignal(%q) = %v, %v", text, got, err)
		}
	}
}
