//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"

	"github.com/standbyd/standbyd/plugins"
	"github.com/standbyd/standbyd/plugins/hookspb"
	"github.com/standbyd/standbyd/plugins/internal/wire"
	"github.com/standbyd/standbyd/test/eventually"
)

// Every plugin that does not come up says why in status, holds nobody up, and
// leaves the others alone.
func TestPluginThatDoesNotComeUp(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("\x00\x01\x02 no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	quick := func(c Config) Config { c.StartTimeout = 500 * time.Millisecond; return c }
	for _, c := range []struct {
		name, state, says string
		conf              Config
	}{
		{"missing", stateFailed, "does not exist", Config{Name: "x", Command: []string{filepath.Join(dir, "nothing")}}},
		{"not in PATH", stateFailed, "is not in PATH", Config{Name: "x", Command: []string{"no-such-plugin-anywhere"}}},
		{"folder", stateFailed, "is a folder", Config{Name: "x", Command: []string{dir}}},
		{"not executable", stateFailed, "chmod +x", Config{Name: "x", Command: []string{plain}}},
		{"no program", stateFailed, "not a program of this machine", Config{Name: "x", Command: []string{garbage}}},
		{"no interpreter", stateFailed, "interpreter", script(t, "x", "").withFirstLine(t, "#!/no/such/interpreter")},
		{"no folder", stateFailed, "working directory", Config{Name: "x", Command: []string{self(t)}, Dir: filepath.Join(dir, "gone")}},
		{"junk", stateFailed, `printed "Loading..." to standard output before its handshake`, script(t, "x", "echo Loading...; sleep 60")},
		{"200 KiB of junk", stateFailed, `before its handshake`, script(t, "x", "head -c 204800 /dev/zero | tr '\\0' x; echo; sleep 60")},
		{"tcp", stateFailed, "only Unix sockets", script(t, "x", "echo '1|1|tcp|127.0.0.1:1|grpc'; sleep 60")},
		{"net/rpc", stateFailed, "only grpc", script(t, "x", "echo '1|1|unix|/x|netrpc'; sleep 60")},
		{"version", stateBackoff, "incompatible API version", script(t, "x", "echo '1|99|unix|/x|grpc'; sleep 60")},
		{"nobody listens", stateBackoff, "did not come up after its handshake: plugin x: Describe: the plugin died: killed: its connection failed", script(t, "x", "echo '1|1|unix|/nobody/listens|grpc'; sleep 60")},
		{"never", stateBackoff, "printed no handshake within 500ms", quick(script(t, "x", "sleep 60"))},
		{"closes stdout", stateBackoff, "printed no handshake", quick(script(t, "x", "exec >&-; sleep 60"))},
		{"crash at once", stateBackoff, "ended before its handshake: exit status 3; last words: cannot load", script(t, "x", "echo cannot load >&2; exit 3")},
		{"exits at once", stateBackoff, "ended before its handshake: exit status 0", Config{Name: "x", Command: []string{"true"}}},
		{"wrong sum", stateFailed, "the configuration says 00", Config{Name: "x", Command: []string{self(t)}, SHA256: strings.Repeat("00", 32)}},
		{"unknown key", stateFailed, `"vetto" is unknown; did you mean "veto"?`, play(t, playTalker).withTable(map[string]any{"vetto": "x"})},
		{"no config taken", stateFailed, "takes no config", play(t, playBare).withTable(map[string]any{"a": "x"})},
		{"no hooks", stateBackoff, "implements no hook", play(t, playNothing)},
		{"misspelt hook", stateBackoff, "has a method OnPromote that is no hook: want func(context.Context, role.Transition) error, have func(role.Transition) error", play(t, playMisspelt)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := raise(t, c.conf)
			if s.pre.HasPrePromote() {
				t.Error("it gives a gate")
			}
			st := s.until(c.state)
			if !strings.Contains(st.LastError, c.says) {
				t.Errorf("status says %q, want %q", st.LastError, c.says)
			}
			if len(st.LastError) > 700 || strings.Contains(st.LastError, "\n") {
				t.Errorf("%d bytes of error: %q", len(st.LastError), st.LastError)
			}
			// In between it may be starting again, which is waited for.
			err := s.hooks.OnPromote(within(t, 3*time.Second), leading(1))
			if err == nil {
				t.Error("OnPromote succeeds")
			}
			if err := s.hooks.OnDemote(within(t, 3*time.Second), leading(1)); err != nil {
				t.Errorf("OnDemote: %v", err)
			}
			began := time.Now()
			s.end()
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("Stop took %v", d)
			}
			for _, line := range c.conf.Command {
				noProcess(t, line)
			}
		})
	}
}

// noProcess fails if a process runs the script; other commands are skipped.
func noProcess(t *testing.T, file string) {
	t.Helper()
	if !strings.HasPrefix(file, os.TempDir()) || file == self(t) {
		return
	}
	// What is being forked right now shows its parent's command line.
	eventually.Holds(t, file+" does not run", func() bool {
		out, _ := exec.Command("pgrep", "-f", file).Output()
		return len(out) == 0
	})
}

func (c Config) withTable(table map[string]any) Config { c.Table = table; return c }

func (c Config) withFirstLine(t *testing.T, line string) Config {
	if err := os.WriteFile(c.Command[0], []byte(line+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return c
}

// bare has one hook only.
type bare struct{}

func (bare) OnPromote(context.Context, plugins.Transition) error { return nil }

type misspelt struct{}

func (misspelt) OnPromote(plugins.Transition) error { return nil }

var (
	playBare     = puppet("bare", func() { plugins.Serve(bare{}) })
	playNothing  = puppet("nothing", func() { plugins.Serve(struct{}{}) })
	playMisspelt = puppet("misspelt", func() { plugins.Serve(misspelt{}) })
)

func TestHungHookCostsTheProcessGroup(t *testing.T) {
	for _, hook := range []string{"promote", "demote", "change", "pre"} {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			c := play(t, playGatekeeper)
			c.Table = map[string]any{"hang": hook}
			s := raise(t, c)
			s.pre.HasPrePromote()
			pid := s.until("running").PID
			began := time.Now()
			var err error
			switch ctx := within(t, time.Second); hook {
			case "promote":
				err = s.hooks.OnPromote(ctx, leading(1))
			case "demote":
				err = s.hooks.OnDemote(ctx, leading(1))
			case "change":
				err = s.hooks.OnLeaderChange(ctx, leading(1))
			case "pre":
				err = s.pre.PrePromote(ctx, leading(1))
			}
			if took := time.Since(began); !errors.Is(err, ErrHung) || took < 500*time.Millisecond {
				t.Fatalf("after %v: %v", took, err)
			}
			if !gone(pid) {
				t.Errorf("the hook has been given up and pid %d lives", pid)
			}
			<-s.replay // it is back, and asks for a repetition
			st := s.until("running")
			if st.PID == pid || !strings.Contains(st.LastError, "hung 1 time") || !strings.Contains(st.LastError, "did not return within") {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// A hook that is called off is no reason to kill; the next one waits for it.
func TestCalledOffHookFinishesBeforeTheNext(t *testing.T) {
	s := raise(t, play(t, playSlow))
	pid := s.until("running").PID
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		s.printed("promote begins")
		cancel(errors.New("the leadership has ended"))
	}()
	if err := s.hooks.OnPromote(ctx, leading(1)); err == nil || !strings.Contains(err.Error(), "the leadership has ended") {
		t.Fatalf("have %v", err)
	}
	if err := s.hooks.OnDemote(within(t, limit), leading(1)); err != nil {
		t.Fatal(err)
	}
	if st := s.hooks.Status(); st.PID != pid || st.LastError != "" {
		t.Errorf("status %+v", st)
	}
	s.printed("slow: demote")
	out := strings.Join(s.output(), ", ")
	if out != "slow: promote begins, slow: promote sees context canceled, slow: promote ends, slow: demote" {
		t.Errorf("have %s", out)
	}
}

type slow struct{}

func (slow) OnPromote(ctx context.Context, _ plugins.Transition) error {
	fmt.Fprintln(os.Stderr, "promote begins")
	<-ctx.Done()
	fmt.Fprintln(os.Stderr, "promote sees", ctx.Err())
	time.Sleep(300 * time.Millisecond)
	fmt.Fprintln(os.Stderr, "promote ends")
	return nil
}

func (slow) OnDemote(context.Context, plugins.Transition) error {
	fmt.Fprintln(os.Stderr, "demote")
	return nil
}

var playSlow = puppet("slow", func() { plugins.Serve(slow{}) })

func TestCrashInAHookIsToldAndReplayed(t *testing.T) {
	c := play(t, playTalker)
	c.Table = map[string]any{"crash": "promote"}
	s := raise(t, c)
	pid := s.until("running").PID
	err := s.hooks.OnPromote(within(t, limit), leading(1))
	if !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "I quit") {
		t.Fatalf("have %v", err)
	}
	<-s.replay
	if st := s.until("running"); st.PID == pid || st.Token != 0 {
		t.Errorf("status %+v", st)
	}
	// The leadership ends before the repetition: somebody may have begun what
	// OnDemote undoes.
	if err := s.hooks.OnDemote(within(t, limit), leading(1)); err != nil {
		t.Fatal(err)
	}
	s.printed("demote 1.1")
}

// An OnDemote that found no process is the first that the next one hears.
func TestOwedDemoteComesFirst(t *testing.T) {
	s := raise(t, play(t, playTalker))
	pid := s.until("running").PID
	if err := s.hooks.OnPromote(within(t, limit), leading(1)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the death is seen", func() bool { return s.hooks.Status().PID != pid })
	if err := s.hooks.OnDemote(within(t, limit), leading(1)); err != nil {
		t.Fatal(err)
	}
	if err := retry(t, func() error { return s.hooks.OnPromote(within(t, limit), leading(2)) }); err != nil {
		t.Fatal(err)
	}
	s.printed("promote 1.2")
	out := strings.Join(s.output(), "\n")
	demote, promote := strings.Index(out, "demote 1.1"), strings.Index(out, "promote 1.2")
	if demote < 0 || promote < demote {
		t.Errorf("have:\n%s", out)
	}
}

// retry repeats what fails while a plugin is in back-off.
func retry(t *testing.T, f func() error) (err error) {
	t.Helper()
	eventually.Holds(t, "a call that succeeds", func() bool { err = f(); return err == nil })
	return err
}

// go-plugin's own reader of standard error ends its host over this line.
func TestLinesOnStderrHurtNobody(t *testing.T) {
	lines := []string{
		`{"@message": 5}`, `{"@message": {"a": 1}, "@level": 7}`, `{"@timestamp": 5, "@message": "m"}`, `{`, `{}`, `null`, "\x00\xff\xfe", `[ERROR] x`,
		`{"@level":"warn","@message":"disk is slow","@module":"io","ms":120}`,
	}
	c := play(t, playWriter)
	list := make([]any, len(lines))
	for i := range lines {
		list[i] = lines[i]
	}
	c.Table = map[string]any{"stderr": list}
	s := raiseUp(t, c)
	if err := s.hooks.OnPromote(within(t, limit), leading(1)); err != nil {
		t.Fatal(err)
	}
	s.printed(`writer: {"@message": 5}`)
	s.printed("writer: [WARN] io: disk is slow ms=120")
	if st := s.hooks.Status(); st.State != "leading" || st.LastError != "" {
		t.Errorf("status %+v", st)
	}
}

type writer struct {
	conf struct {
		Stderr []string
		Stdout int // bytes in one line
	}
}

func (w *writer) Configure(_ context.Context, table plugins.Table) error {
	return table.Decode(&w.conf)
}

func (w *writer) OnPromote(context.Context, plugins.Transition) error {
	for _, line := range w.conf.Stderr {
		fmt.Fprintln(os.Stderr, line)
	}
	if n := w.conf.Stdout; n > 0 {
		line := strings.Repeat("x", n) + "\n"
		fmt.Print(line)
		for b := []byte(line); len(b) > 0; { // the descriptor itself, as cgo or a child would
			n, err := syscall.Write(1, b)
			if err != nil {
				return err
			}
			b = b[n:]
		}
		fmt.Println("the line is out")
	}
	return nil
}

// rawWriter is a plugin that was not written with package plugins: its
// standard output is the pipe of the handshake, and it prints to that.
type rawWriter struct {
	hookspb.UnimplementedHooksServer
}

func (rawWriter) Describe(context.Context, *hookspb.DescribeRequest) (*hookspb.DescribeResponse, error) {
	return &hookspb.DescribeResponse{Hooks: []string{wire.HookOnPromote, "a word of tomorrow"}}, nil
}

func (rawWriter) OnPromote(context.Context, *hookspb.TransitionRequest) (*hookspb.HookResponse, error) {
	if err := (&writer{}).print(200 << 10); err != nil {
		return nil, err
	}
	return &hookspb.HookResponse{}, nil
}

func (*writer) print(n int) error {
	w := &writer{}
	w.conf.Stdout = n
	return w.OnPromote(context.Background(), plugins.Transition{})
}

var (
	playWriter = puppet("writer", func() { plugins.Serve(&writer{}) })
	playRaw    = puppet("raw", func() {
		// Undo what package plugins did: the handshake's pipe is the one that
		// is open for writing above standard error.
		for fd := 3; fd < 64; fd++ {
			var st syscall.Stat_t
			if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
				continue
			}
			info, _ := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
			if strings.Contains(string(info), "flags:\t01") || strings.Contains(string(info), "flags:\t02000001") {
				_ = syscall.Dup3(fd, 1, 0)
			}
		}
		os.Setenv(wire.CookieKey, wire.CookieValue)
		goplugin.Serve(&goplugin.ServeConfig{
			HandshakeConfig:  wire.Handshake(),
			VersionedPlugins: wire.Versions(rawWriter{}),
			GRPCServer:       goplugin.DefaultGRPCServer,
		})
	})
)

func TestLongLineOnStdoutBlocksNobody(t *testing.T) {
	for _, name := range []string{playWriter, playRaw} {
		t.Run(name, func(t *testing.T) {
			c := play(t, name)
			if name == playWriter {
				c.Table = map[string]any{"stdout": int64(200 << 10)}
			}
			s := raiseUp(t, c)
			if err := s.hooks.OnPromote(within(t, limit), leading(1)); err != nil {
				t.Fatal(err)
			}
			s.printed("the line is out")
			// Another pipe than that of the line before: no order between them.
			eventually.Holds(t, "the long lines", func() bool { return s.count("xxx") >= 2*200<<10/maxLine })
			for _, line := range s.output() {
				if len(line) > maxLine+100 {
					t.Errorf("a line of %d bytes", len(line))
				}
			}
		})
	}
}

// A plugin that never comes up holds up nobody: neither its role's demotions
// nor, for long, the promotions.
func TestSilentPluginHoldsNobodyUp(t *testing.T) {
	s := raise(t, script(t, "silent", "sleep 60"))
	s.until("starting")
	began := time.Now()
	if err := s.hooks.OnPromote(within(t, limit), leading(1)); err == nil || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("OnPromote: %v", err)
	}
	promote := time.Since(began)
	began = time.Now()
	if err := s.hooks.OnLeaderChange(within(t, limit), leading(1)); err == nil {
		t.Error("OnLeaderChange succeeds")
	}
	if err := s.hooks.OnDemote(within(t, limit), leading(1)); err != nil {
		t.Errorf("OnDemote: %v", err)
	}
	if demote := time.Since(began); promote > promoteWait+5*time.Second || demote > 5*time.Second {
		t.Errorf("OnPromote took %v, OnDemote %v", promote, demote)
	}
	if st := s.hooks.Status(); st.State != "starting" {
		t.Errorf("status %+v: the start was over too early to show anything", st)
	}
}

// Descendants go with their plugin, whatever group they are in. One that
// cannot be found, and holds the pipes, keeps nobody waiting.
func TestDescendantsGoWithTheirPlugin(t *testing.T) {
	s := raiseUp(t, play(t, playParent))
	if err := s.hooks.OnPromote(within(t, limit), leading(1)); err != nil {
		t.Fatal(err)
	}
	pid := s.hooks.Status().PID
	var inGroup, escaped, hidden int
	eventually.Holds(t, "the pids", func() bool {
		for _, l := range s.output() {
			fmt.Sscanf(strings.TrimPrefix(l, "parent: "), "grandchildren %d %d %d", &inGroup, &escaped, &hidden)
		}
		return hidden != 0
	})
	t.Cleanup(func() { syscall.Kill(hidden, syscall.SIGKILL) })
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.replay // so the next one is up
	if !gone(inGroup) || !gone(escaped) {
		t.Errorf("a new process is up; in the group gone: %v, in a session of its own gone: %v", gone(inGroup), gone(escaped))
	}
	if gone(hidden) {
		t.Error("the one that holds the pipes is dead, so this test shows nothing")
	}
}

type parent struct{}

func (parent) OnPromote(context.Context, plugins.Transition) error {
	start := func(setsid bool, env []string) int {
		cmd := exec.Command("/bin/sleep", "120")
		cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, env
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		return cmd.Process.Pid
	}
	fmt.Fprintf(os.Stderr, "grandchildren %d %d %d\n", start(false, nil), start(true, nil), start(true, []string{"A=b"}))
	return nil
}

var playParent = puppet("parent", func() { plugins.Serve(parent{}) })

// A process that is stopped answers nothing; every call ends all the same.
func TestStoppedPluginIsKilled(t *testing.T) {
	t.Run("demote", func(t *testing.T) {
		t.Parallel()
		s := raise(t, play(t, playTalker))
		pid := s.until("running").PID
		if err := s.hooks.OnPromote(within(t, limit), leading(1)); err != nil {
			t.Fatal(err)
		}
		freeze(t, pid)
		if err := s.hooks.OnDemote(within(t, time.Second), leading(1)); !errors.Is(err, ErrHung) {
			t.Fatalf("have %v", err)
		}
		if !gone(pid) {
			t.Error("it lives")
		}
		s.printed("demote 1.1") // to the next process: nobody answered for it
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		s := raise(t, play(t, playBare)) // without a Stop of its own
		pid := s.until("running").PID
		freeze(t, pid)
		began := time.Now()
		s.end()
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("Stop took %v", took)
		}
		if !gone(pid) {
			t.Error("it lives")
		}
	})
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		s := raise(t, play(t, playTalker))
		pid := s.until("running").PID
		freeze(t, pid)
		eventually.Holds(t, "another process", func() bool { now := s.hooks.Status().PID; return now != 0 && now != pid })
		if last := s.hooks.Status().LastError; !strings.Contains(last, "health checks") {
			t.Errorf("status says %q", last)
		}
	})
}

// freeze returns when no thread of the process can answer any more.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "every thread is stopped", func() bool {
		stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, file := range stats {
			b, err := os.ReadFile(file)
			if err != nil {
				return false
			}
			if rest := string(b[strings.LastIndexByte(string(b), ')')+1:]); !strings.HasPrefix(rest, " T") {
				return false
			}
		}
		return len(stats) > 0
	})
}

func TestStopThatHangsIsEnded(t *testing.T) {
	c := play(t, playTalker)
	c.Table = map[string]any{"hang": "stop"}
	s := raise(t, c)
	pid := s.until("running").PID
	ctx := within(t, time.Second)
	_ = s.hooks.Stop(ctx) // an error or not: it may be late
	eventually.Holds(t, "it is dead", func() bool { return gone(pid) })
}
