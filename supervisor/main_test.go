package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/cgroup"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/shortdir"
	"github.com/standbyd/standbyd/test/verify"
)

// The test binary plays the workers and, where one has to be killed, the
// supervisor too.
const (
	playWorker     = "TEST_WORKER"
	playSupervisor = "TEST_SUPERVISOR" // a JSON file with its config
	playUnstaged   = "TEST_UNSTAGED"   // the same, in a program that does not call Stage
)

func TestMain(m *testing.M) {
	if path := os.Getenv(playUnstaged); path != "" {
		os.Exit(superviseAsTold(path))
	}
	Stage()
	if kind := os.Getenv(playWorker); kind != "" {
		os.Exit(workers[kind]())
	}
	if path := os.Getenv(playSupervisor); path != "" {
		os.Exit(superviseAsTold(path))
	}
	os.Exit(m.Run())
}

var workers = map[string]func() int{
	"good":     func() int { return work() },
	"exit":     func() int { fmt.Println("last words"); return 3 },
	"never":    func() int { time.Sleep(time.Hour); return 0 },
	"stubborn": func() int { signal.Ignore(syscall.SIGTERM); return work() },
	"sticky":   func() int { signal.Ignore(syscall.SIGTERM); return work(hangInLead) },
	"flash":    func() int { return work(dieInLead) },
	"refuses": func() int {
		if which, _ := os.ReadFile(os.Getenv("TEST_REFUSES")); string(which) != "all" && string(which) != os.Getenv("STANDBYD_INDEX") {
			return work()
		}
		return work(func(context.Context, *coord.Leadership) error { return errors.New("cannot open the database") })
	},
	"dies": func() int {
		if which, _ := os.ReadFile(os.Getenv("TEST_REFUSES")); string(which) != "all" {
			return work()
		}
		return work(dieInLead)
	},
	"serve": func() int { return work(serveInLead) },
	"deaf":  func() int { os.Unsetenv("NOTIFY_SOCKET"); return work(serveInLead) },
	"forks": func() int { fork(); return work() },
	"picky": func() int {
		if os.Getenv("STANDBYD_INDEX") == os.Getenv("TEST_FAILS") {
			fmt.Println("cannot in this place")
			return 4
		}
		return work()
	},
	"gated": func() int {
		for {
			switch b, _ := os.ReadFile(os.Getenv("TEST_GATE")); string(b) {
			case "work":
				return work()
			case "fail":
				return 4
			}
			time.Sleep(5 * time.Millisecond)
		}
	},
	"status": func() int { n, _ := strconv.Atoi(os.Getenv("TEST_STATUS")); return n },
}

// fork leaves a child in a session of its own.
func fork() {
	child := exec.Command("/bin/sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		panic(err)
	}
}

func hangInLead(context.Context, *coord.Leadership) error { select {} }

func dieInLead(context.Context, *coord.Leadership) error {
	time.Sleep(20 * time.Millisecond)
	os.Exit(9)
	return nil
}

// serveInLead answers each connection with the pid and the token.
func serveInLead(ctx context.Context, l *coord.Leadership) error {
	ln, err := l.Listener("http")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { ln.Close() })
	for {
		c, err := ln.Accept()
		if err != nil {
			return nil
		}
		fmt.Fprintf(c, "%d %s\n", os.Getpid(), l.Token())
		c.Close()
	}
}

// work joins the role and notes the beginning and the end of each lead in the
// file TEST_LEADS.
func work(lead ...func(context.Context, *coord.Leadership) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := coord.Run(ctx, func(ctx context.Context, l *coord.Leadership) error {
		note("lead %s %d", l.Token(), os.Getpid())
		defer note("end %s %d", l.Token(), os.Getpid())
		if len(lead) > 0 {
			return lead[0](ctx, l)
		}
		<-ctx.Done()
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func note(format string, args ...any) {
	f, err := os.OpenFile(os.Getenv("TEST_LEADS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(f, format+"\n", args...)
	f.Close()
}

// recorder is a hook that remembers its calls; safe for concurrent use.
type recorder struct {
	UnimplementedHooks
	mu     sync.Mutex
	calls  []string
	gate   bool
	on     func(moment string, t role.Transition) error // may be nil
	status HookStatus
	env    HookEnv
}

func (h *recorder) add(moment string, t role.Transition) error {
	h.mu.Lock()
	text := moment
	if t.Token != 0 {
		text += fmt.Sprintf(" %s %s %s", t.Token, t.Worker, t.Reason)
	}
	h.calls = append(h.calls, text)
	h.mu.Unlock()
	if h.on != nil {
		return h.on(moment, t)
	}
	return nil
}

func (h *recorder) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func (h *recorder) Start(_ context.Context, env HookEnv) error {
	h.env = env
	return h.add("start", role.Transition{})
}
func (h *recorder) OnPromote(_ context.Context, t role.Transition) error { return h.add("promote", t) }
func (h *recorder) OnDemote(_ context.Context, t role.Transition) error  { return h.add("demote", t) }
func (h *recorder) Stop(context.Context) error                           { return h.add("stop", role.Transition{}) }
func (h *recorder) HasPrePromote() bool                                  { return h.gate }
func (h *recorder) PrePromote(_ context.Context, t role.Transition) error {
	return h.add("ask", t)
}
func (h *recorder) Status() HookStatus { return h.status }

// world is one supervisor with its folders.
type world struct {
	t      *testing.T
	config Config
	sup    *Supervisor
	stop   context.CancelFunc
	ended  chan error
}

// testRole is a role of the given kind of workers that reacts fast.
func testRole(t *testing.T, dir, kind string) RoleConfig {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := DefaultRole()
	r.Name, r.Command, r.Dir = "kv", []string{exe}, dir
	r.Env = map[string]string{playWorker: kind, "TEST_LEADS": filepath.Join(dir, "leads")}
	r.Tick, r.Grace = 50*time.Millisecond, 20
	r.RestartDelay, r.RestartMaxDelay, r.Burst = 10*time.Millisecond, 100*time.Millisecond, 1000
	r.Failovers = 1000
	return r
}

// newConfig has a short path: sockets are in the runtime folder.
func newConfig(t *testing.T, kind string) Config {
	dir := shortdir.New(t)
	return Config{RuntimeDir: filepath.Join(dir, "run"), StateDir: filepath.Join(dir, "state"),
		Roles: []RoleConfig{testRole(t, dir, kind)}, Env: []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE")}}
}

func start(t *testing.T, c Config) *world {
	t.Helper()
	sup, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &world{t: t, config: c, sup: sup, stop: stop, ended: make(chan error, 1)}
	go func() { w.ended <- sup.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		sup.Kill()
		select {
		case err := <-w.ended:
			w.ended <- err
		case <-time.After(limit):
			t.Error("the supervisor did not end")
		}
		if t.Failed() {
			for _, e := range sup.RecentEvents() {
				b, _ := json.Marshal(e)
				t.Logf("%s", b)
			}
		}
		checkEvents(t, sup.RecentEvents())
	})
	return w
}

const limit = 60 * time.Second

// until waits until the first role is as wanted, and returns it.
func (w *world) until(what string, ok func(RoleStatus) bool) RoleStatus {
	w.t.Helper()
	return w.untilRole(0, what, ok)
}

func (w *world) untilRole(i int, what string, ok func(RoleStatus) bool) RoleStatus {
	w.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		r := w.sup.Snapshot().Roles[i]
		if ok(r) {
			return r
		}
		select {
		case err := <-w.ended:
			w.ended <- err
			w.t.Fatalf("the supervisor ended while waiting until %s: %v", what, err)
		default:
		}
		if time.Now().After(deadline) {
			b, _ := json.MarshalIndent(r, "", " ")
			w.t.Fatalf("not within %v: %s; the role is %s", limit, what, b)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func led(r RoleStatus) bool { return r.State == RoleLed && r.Leader != "" }

// full: led, and everybody else is ready.
func full(r RoleStatus) bool {
	for _, w := range r.Workers {
		if !w.Ready {
			return false
		}
	}
	return led(r)
}

func (w *world) shutdown() {
	w.t.Helper()
	w.stop()
	select {
	case err := <-w.ended:
		w.ended <- err
		if err != nil {
			w.t.Fatalf("shutdown: %v", err)
		}
	case <-time.After(limit):
		w.t.Fatal("shutdown did not end")
	}
}

// checkEvents holds what must be true of every run: leaderships do not
// overlap, tokens rise, and hooks are demoted before the next promotion.
func checkEvents(t *testing.T, events []Event) {
	t.Helper()
	var text bytes.Buffer
	roles := map[string]bool{}
	for _, e := range events {
		if err := json.NewEncoder(&text).Encode(e); err != nil {
			t.Errorf("event %d: %v", e.ID, err)
		}
		roles[e.Role] = true
	}
	for name := range roles {
		h, err := verify.Events(name, bytes.NewReader(text.Bytes()))
		if err != nil {
			t.Errorf("role %s: %v", name, err)
		}
		for _, v := range h.Check() {
			t.Errorf("role %s: %v", name, v)
		}
	}
}

// leads checks the workers' own record of their leads, and returns it.
func (w *world) leads() []string {
	b, _ := os.ReadFile(w.config.Roles[0].Env["TEST_LEADS"])
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// noProcesses checks that nobody is left of the first role.
func (w *world) noProcesses() {
	w.t.Helper()
	left := strays(roleDir(w.config.RuntimeDir, "kv"), "", nobody)
	if len(left) != 0 {
		w.t.Errorf("processes are left: %v", left)
	}
}

// told is the part of a Config that a supervisor in its own process is told.
type told struct {
	RuntimeDir, StateDir string
	Roles                []RoleConfig
	Env                  []string
	Cgroups              CgroupMode
}

func superviseAsTold(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var c told
	if err := json.Unmarshal(b, &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	sup, err := New(Config{RuntimeDir: c.RuntimeDir, StateDir: c.StateDir, Roles: c.Roles, Env: c.Env, Cgroups: c.Cgroups})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := sup.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// daemon is a supervisor in a process of its own.
type daemon struct {
	process *os.Process
	wait    func() int // its exit status; any number of calls
}

func (d *daemon) kill() {
	d.process.Kill()
	d.wait()
}

// leftInGeneration2 is a role of which the first supervisor has ended in order,
// and the second was killed.
func leftInGeneration2(t *testing.T, c Config) {
	t.Helper()
	w := start(t, c)
	w.until("the role is full", full)
	w.shutdown()
	second := apart(t, c)
	awaitLeads(t, c, 2)
	second.kill()
}

// apart starts a supervisor in a process of its own. What it leaves behind is
// ended with the test.
func apart(t *testing.T, c Config) *daemon {
	t.Helper()
	b, err := json.Marshal(told{c.RuntimeDir, c.StateDir, c.Roles, c.Env, c.Cgroups})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(c.StateDir), "told.json")
	if err := writeWhole(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	exe, _ := os.Executable()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), playSupervisor+"="+path)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &daemon{cmd.Process, sync.OnceValue(func() int { cmd.Wait(); return cmd.ProcessState.ExitCode() })}
	t.Cleanup(func() {
		d.kill()
		for _, r := range c.Roles {
			for _, id := range strays(roleDir(c.RuntimeDir, r.Name), "", nobody) {
				syscall.Kill(id.PID, syscall.SIGKILL)
			}
		}
		removeGroups(t, c.RuntimeDir)
	})
	return d
}

// removeGroups removes the cgroups of a supervisor that was killed.
func removeGroups(t *testing.T, runtimeDir string) {
	b, _ := os.ReadFile(homesPath(runtimeDir))
	for home := range strings.FieldsSeq(string(b)) {
		for _, role := range cgroup.Roles(home) {
			for _, dir := range cgroup.List(home, role) {
				if c, err := proc.OpenCgroup(dir); err == nil {
					if err := endGroup(c, limit); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if err := cgroup.Remove(home); err != nil {
			t.Error(err)
		}
	}
}

func dial(t *testing.T, address string) (string, error) {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, limit)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(limit))
	b := make([]byte, 100)
	n, err := c.Read(b)
	return strings.TrimSpace(string(b[:n])), err
}
