package supervisor

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/test/eventually"
)

func TestLostSegmentIsReplaced(t *testing.T) {
	for kind, damage := range map[string]func(path string) error{
		"removed":     os.Remove,
		"cut":         func(path string) error { return os.Truncate(path, 100) },
		"overwritten": overwrite,
		"folder removed": func(path string) error {
			dir := path[:strings.LastIndexByte(path, '/')]
			for deadline := time.Now().Add(limit); ; { // the supervisor may write into it meanwhile
				if err := os.RemoveAll(dir); err == nil || time.Now().After(deadline) {
					return err
				}
			}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			c := newConfig(t, "good")
			other := testRole(t, c.Roles[0].Dir, "good")
			other.Name = "other"
			c.Roles = append(c.Roles, other)
			h := &recorder{}
			c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: h}}
			w := start(t, c)
			before := w.until("the role is full", full)
			untouched := w.untilRole(1, "the other role is full", full)
			if err := damage(before.Segment); err != nil {
				t.Fatal(err)
			}
			after := w.until("the role has a new segment", func(r RoleStatus) bool { return full(r) && r.Segment != before.Segment })
			if after.Token <= before.Token || after.Token.Generation() != 2 {
				t.Errorf("token %s after %s", after.Token, before.Token)
			}
			now := w.untilRole(1, "the other role is full", full)
			if now.Token != untouched.Token || now.Workers[0].PID != untouched.Workers[0].PID {
				t.Errorf("the other role was touched")
			}
			w.shutdown()
			w.noProcesses()
		})
	}
}

// overwrite writes zeros over the whole file, in place.
func overwrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, info.Size()), 0)
	return err
}

// chosen is the first worker that it is asked about.
type chosen struct {
	mu   sync.Mutex
	name string
}

func (c *chosen) is(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name == "" {
		c.name = name
	}
	return c.name == name
}

func TestVetoSendsTheNextCandidate(t *testing.T) {
	c := newConfig(t, "good")
	var vetoed chosen
	h := &recorder{gate: true}
	h.on = func(moment string, tr role.Transition) error {
		if moment == "ask" && vetoed.is(tr.Worker) {
			return errors.New("not this one")
		}
		return nil
	}
	c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: h}}
	w := start(t, c)
	r := w.until("the role is led", led)
	calls := h.list()
	if vetoed.is(r.Leader) || r.Token.Term() < 2 {
		t.Errorf("%s leads in %s; vetoed %s; %q", r.Leader, r.Token, vetoed.name, calls)
	}
	if !r.Protection.Gate {
		t.Error("the gate is not shown")
	}
	eventually.Holds(t, "the hooks are told", func() bool { calls = h.list(); return strings.HasPrefix(calls[len(calls)-1], "promote") })
	for _, lead := range w.leads() {
		if strings.HasPrefix(lead, "lead 1.1 ") {
			t.Errorf("the vetoed candidate has led: %q", w.leads())
		}
	}
}

func TestFailedHookIsRepeated(t *testing.T) {
	c := newConfig(t, "good")
	h := &recorder{}
	failures := 0
	h.on = func(moment string, _ role.Transition) error {
		if moment == "promote" && failures == 0 {
			failures++
			return errors.New("no such table")
		}
		return nil
	}
	c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: h}}
	w := start(t, c)
	w.until("the failure is shown", func(r RoleStatus) bool { return strings.Contains(r.Plugins[0].LastError, "no such table") && led(r) })
	w.until("it was repeated", func(r RoleStatus) bool { return r.Plugins[0].LastError == "" })
	if r := w.until("the role is led", led); r.Token.Term() != 1 {
		t.Errorf("the failure cost leadership: %s", r.Token)
	}
}

func TestHookFailureDemotes(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].HookFailure = "demote"
	h := &recorder{}
	var first chosen
	h.on = func(moment string, tr role.Transition) error {
		if moment == "promote" && first.is(tr.Worker) {
			return errors.New("cannot")
		}
		return nil
	}
	c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: h}}
	w := start(t, c)
	w.until("another one leads", func(r RoleStatus) bool {
		return led(r) && r.Term > 1 && !first.is(r.Leader) && r.Plugins[0].LastError == ""
	})
}

func TestTakenPortIsAnErrorOfRun(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := newConfig(t, "serve")
	c.Roles[0].Listen = []ListenConfig{{Name: "http", Address: ln.Addr().String()}}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var bad *ConfigError
	if err := s.Run(context.Background()); !errors.As(err, &bad) || bad.Field != "listen[0].address" || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(roleDir(c.RuntimeDir, "kv")); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// TestCallersOutliveTheSupervisor: a request to a supervisor that has ended or
// never began returns.
func TestCallersOutliveTheSupervisor(t *testing.T) {
	c := newConfig(t, "good")
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Drill(context.Background(), "kv", DrillOptions{}, nil); !errors.Is(err, ErrNotRunning) {
		t.Errorf("before Run: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Ack(context.Background(), "kv"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after Run: %v", err)
	}
	if err := s.Run(context.Background()); err == nil {
		t.Error("a second Run began")
	}
}
