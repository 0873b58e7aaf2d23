package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/programs"
	"github.com/standbyd/standbyd/test/shortdir"
)

// The test binary plays every plugin: puppets are registered beside their
// tests, and one that no test starts fails the run.
const puppetKey = "TEST_PUPPET"

var (
	puppets    = map[string]func(){}
	puppetUsed sync.Map
)

func puppet(name string, play func()) string {
	puppets[name] = play
	return name
}

func TestMain(m *testing.M) {
	supervisor.Stage()
	if name := os.Getenv(puppetKey); name != "" {
		play, ok := puppets[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "no puppet %q\n", name)
			os.Exit(2)
		}
		play()
		os.Exit(0)
	}
	code := m.Run()
	if code == 0 && wholeRun() {
		for name := range puppets {
			if _, ok := puppetUsed.Load(name); !ok {
				fmt.Fprintf(os.Stderr, "puppet %q is started by no test\n", name)
				code = 1
			}
		}
	}
	os.Exit(code)
}

func wholeRun() bool {
	return !slices.ContainsFunc(os.Args, func(a string) bool {
		return strings.HasPrefix(a, "-test.run") || strings.HasPrefix(a, "-test.skip") || strings.HasPrefix(a, "-test.list") || strings.HasPrefix(a, "-test.short=true") || strings.HasPrefix(a, "-test.fuzz")
	})
}

// limit is for what must happen, on a machine that is busy with other things.
const limit = 60 * time.Second

func self(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// play is the Config that starts a puppet.
func play(t testing.TB, name string) Config {
	t.Helper()
	if _, ok := puppets[name]; !ok {
		t.Fatalf("no puppet %q", name)
	}
	puppetUsed.Store(name, true)
	return Config{Name: name, Command: []string{self(t)}, Env: []string{puppetKey + "=" + name, "GORACE=" + os.Getenv("GORACE")}, StartTimeout: 20 * time.Second}
}

// script is the Config of a plugin that is a shell script.
func script(t testing.TB, name, body string) Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Config{Name: name, Command: []string{file}, StartTimeout: 20 * time.Second}
}

// stage is the supervisor's side of one plugin.
type stage struct {
	t      testing.TB
	name   string
	hooks  supervisor.Hooks
	pre    supervisor.PrePromoter
	replay chan struct{}
	stop   sync.Once

	mu    sync.Mutex
	lines []string
}

func raise(t testing.TB, c Config, change ...func(*plugin)) *stage {
	t.Helper()
	named, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(named.Hooks.(*plugin))
	}
	s := &stage{t: t, name: c.Name, hooks: named.Hooks, pre: named.Hooks.(supervisor.PrePromoter), replay: make(chan struct{}, 100)}
	dir := shortdir.New(t)
	env := supervisor.HookEnv{
		Role: "kv", RuntimeDir: dir,
		Log:     s.log,
		Changed: func() { s.hooks.Status() }, // a supervisor may look at once
		Replay: func() {
			select {
			case s.replay <- struct{}{}:
			default:
			}
		},
	}
	if err := s.hooks.Start(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: %+v\n%s", c.Name, s.hooks.Status(), strings.Join(s.output(), "\n"))
		}
	})
	return s
}

// raiseUp is raise, and waits until the plugin is ready for hooks.
func raiseUp(t testing.TB, c Config) *stage {
	t.Helper()
	s := raise(t, c)
	s.until("running")
	return s
}

func (s *stage) end() {
	s.stop.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := s.hooks.Stop(ctx); err != nil {
			s.t.Errorf("stop: %v", err)
		}
		if st := s.hooks.Status(); st.State != "stopped" || st.PID != 0 {
			s.t.Errorf("after Stop: %+v", st)
		}
	})
}

func (s *stage) log(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, s.name+": "+line)
}

func (s *stage) output() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

func (s *stage) until(state string) supervisor.HookStatus {
	s.t.Helper()
	var st supervisor.HookStatus
	eventually.Holds(s.t, s.name+" is "+state, func() bool { st = s.hooks.Status(); return st.State == state })
	return st
}

// printed waits for a line of the plugin's output that contains text.
func (s *stage) printed(text string) {
	s.t.Helper()
	eventually.Holds(s.t, fmt.Sprintf("a line %q", text), func() bool {
		return slices.ContainsFunc(s.output(), func(l string) bool { return strings.Contains(l, text) })
	})
}

func (s *stage) count(text string) int {
	n := 0
	for _, l := range s.output() {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

// within is a hook's context.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func leading(term uint64) role.Transition {
	return role.Transition{Role: "kv", Token: role.MakeToken(1, term), Worker: "kv-0", PID: os.Getpid(), Reason: role.ReasonFirst}
}

// gone reports whether a process has ended; a zombie that nobody reaps has.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	rest := b[bytes.LastIndexByte(b, ')')+1:]
	return strings.HasPrefix(string(rest), " Z") || strings.HasPrefix(string(rest), " X")
}

// build compiles the package in a folder of this module.
func build(t testing.TB, folder string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command to build with")
	}
	out := filepath.Join(t.TempDir(), filepath.Base(folder))
	if err := programs.Build(out, folder); err != nil {
		t.Fatal(err)
	}
	return out
}
