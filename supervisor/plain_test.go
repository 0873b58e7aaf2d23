package supervisor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestSlowSubscriberLosesTheOldest(t *testing.T) {
	var b bus
	ctx, cancel := context.WithCancel(context.Background())
	events := b.subscribe(ctx)
	const n = subscriberEvents + 50
	for range n {
		b.publish(Event{Type: EventWarning})
	}
	var last, dropped uint64
	for range subscriberEvents {
		e := <-events
		if e.ID <= last {
			t.Fatalf("event %d after %d", e.ID, last)
		}
		last, dropped = e.ID, dropped+e.Dropped
	}
	if last != n || dropped != 50 {
		t.Errorf("last %d, dropped %d", last, dropped)
	}
	cancel()
	if _, open := <-events; open {
		t.Error("the channel is open")
	}
	b.publish(Event{})
	for range 3 * recentEvents {
		b.publish(Event{})
	}
	if got := b.last(); len(got) != recentEvents || got[recentEvents-1].ID != n+1+3*recentEvents {
		t.Errorf("%d recent events", len(got))
	}
}

func TestBackOff(t *testing.T) {
	for row, want := range map[int]time.Duration{1: 100, 2: 200, 3: 400, 4: 500, 60: 500} {
		if got := backOff(100, 500, row, 0); got != want {
			t.Errorf("row %d: %d, want %d", row, got, want)
		}
	}
	if got := backOff(100, 500, 1, 0.999); got < 75 || got > 100 {
		t.Errorf("with jitter: %d", got)
	}
	if got := backOff(0, 0, 5, 0.5); got != 0 {
		t.Errorf("no delay: %d", got)
	}
}

// TestBrokenConfigs names role and field of each.
func TestBrokenConfigs(t *testing.T) {
	for field, spoil := range map[string]func(*Config){
		"runtime_dir":       func(c *Config) { c.RuntimeDir = "run" },
		"state_dir":         func(c *Config) { c.StateDir = "" },
		"role":              func(c *Config) { c.Roles = nil },
		"name":              func(c *Config) { c.Roles = append(c.Roles, c.Roles[0]) },
		"command":           func(c *Config) { c.Roles[0].Command = []string{"./kv"} },
		"dir":               func(c *Config) { c.Roles[0].Dir = "data" },
		"workers":           func(c *Config) { c.Roles[0].Workers = 61 },
		"tick":              func(c *Config) { c.Roles[0].Tick = 0 },
		"grace":             func(c *Config) { c.Roles[0].Grace = 0 },
		"payload":           func(c *Config) { c.Roles[0].Payload = 4097 },
		"preempt":           func(c *Config) { c.Roles[0].Preempt = "often" },
		"proof":             func(c *Config) { c.Roles[0].Proof = "" },
		"fence":             func(c *Config) { c.Roles[0].Fence = "wall" },
		"restart":           func(c *Config) { c.Roles[0].Restart = "maybe" },
		"on_hook_failure":   func(c *Config) { c.Roles[0].HookFailure = "cry" },
		"restart_max_delay": func(c *Config) { c.Roles[0].RestartMaxDelay = 1 },
		"burst":             func(c *Config) { c.Roles[0].Burst = 0 },
		"failovers":         func(c *Config) { c.Roles[0].Failovers = 0 },
		"start_timeout":     func(c *Config) { c.Roles[0].StartTimeout = 0 },
		"progress_timeout":  func(c *Config) { c.Roles[0].ProgressTimeout = time.Millisecond },
		"fence_timeout":     func(c *Config) { c.Roles[0].FenceTimeout = time.Millisecond },
		"stop_signal":       func(c *Config) { c.Roles[0].StopSignal = "PLEASE" },
		"env":               func(c *Config) { c.Roles[0].Env["NOTIFY_SOCKET"] = "x" },
		"worker":            func(c *Config) { c.Roles[0].WorkerOptions = map[int]WorkerOptions{9: {}} },
		"listen[0].name":    func(c *Config) { c.Roles[0].Listen = []ListenConfig{{Name: "a:b", Address: ":1"}} },
		"listen[1].name": func(c *Config) {
			c.Roles[0].Listen = []ListenConfig{{Name: "a", Address: ":1"}, {Name: "a", Address: ":2"}}
		},
		"listen[0].address": func(c *Config) { c.Roles[0].Listen = []ListenConfig{{Name: "a"}} },
		"plugin[0].name":    func(c *Config) { c.Roles[0].Hooks = []NamedHooks{{}} },
		"user":              func(c *Config) { c.Roles[0].User = "nobody-of-that-name" },
		"group":             func(c *Config) { c.Roles[0].Group = "nobody-of-that-name" },
	} {
		t.Run(field, func(t *testing.T) {
			c := newConfig(t, "good")
			if _, err := New(c); err != nil {
				t.Fatalf("the good config: %v", err)
			}
			spoil(&c)
			var bad *ConfigError
			if _, err := New(c); !errors.As(err, &bad) || bad.Field != field {
				t.Errorf("got %v", err)
			}
		})
	}
	c := newConfig(t, "good")
	c.RuntimeDir = "/" + strings.Repeat("long/", 20)
	var bad *ConfigError
	if _, err := New(c); !errors.As(err, &bad) || bad.Role != "kv" || !strings.Contains(err.Error(), "107") {
		t.Errorf("a long runtime_dir: %v", err)
	}
}
