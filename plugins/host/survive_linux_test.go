//go:build linux

package host

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/plugins"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
)

// playHost is a supervisor with two plugins: one that is well, and one that
// never comes to Serve.
var (
	playHost = puppet("host", func() {
		dir, err := os.MkdirTemp("", "sb")
		if err != nil {
			panic(err)
		}
		for i, name := range []string{playTalker, playDeaf} {
			named, err := New(Config{Name: name, Command: []string{os.Args[0]}, Env: []string{puppetKey + "=" + name}, StartTimeout: time.Minute})
			if err != nil {
				panic(err)
			}
			env := supervisor.HookEnv{Role: "kv", RuntimeDir: fmt.Sprintf("%s/%d", dir, i), Log: func(line string) { fmt.Println(line) }}
			if err := named.Hooks.Start(context.Background(), env); err != nil {
				panic(err)
			}
			if name == playTalker {
				go func() {
					for named.Hooks.Status().PID == 0 {
						time.Sleep(time.Millisecond)
					}
					fmt.Println("pid", named.Hooks.Status().PID)
				}()
			}
		}
		select {}
	})
	// playDeaf imports package plugins, as every plugin does, and does not
	// come to Serve.
	playDeaf = puppet("deaf", func() {
		fmt.Fprintln(os.Stderr, "pid", os.Getpid())
		select {}
	})
)

// What a plugin started, and left behind when everything was killed, is gone
// before the next supervisor starts the plugin again.
func TestDescendantsOfAKilledSupervisor(t *testing.T) {
	s := raise(t, play(t, playTalker))
	dir := s.hooks.(*plugin).env.RuntimeDir
	cmd := exec.Command("/bin/sleep", "120")
	cmd.Env = []string{markName + "=" + dir + "/other"}
	other := exec.Command("/bin/sleep", "120")
	other.Env = []string{"X=y", markName + "=" + dir}
	for _, c := range []*exec.Cmd{cmd, other} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { c.Process.Kill(); c.Wait() }()
	}
	pid := s.until("running").PID
	syscall.Kill(pid, syscall.SIGKILL)
	<-s.replay
	if !gone(other.Process.Pid) {
		t.Error("a leftover lives beside the new process")
	}
	if gone(cmd.Process.Pid) {
		t.Error("a process of another plugin was killed")
	}
}

func TestNoPluginOutlivesItsSupervisor(t *testing.T) {
	for _, how := range []string{"at work", "stopped"} {
		t.Run(how, func(t *testing.T) {
			dir := shortdir.New(t)
			c := play(t, playHost)
			play(t, playDeaf)
			cmd := exec.Command(c.Command[0])
			cmd.Env = append(os.Environ(), c.Env[0], "TMPDIR="+dir)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pids []int
			for lines := bufio.NewScanner(out); len(pids) < 2 && lines.Scan(); {
				var pid int
				if i := strings.Index(lines.Text(), "pid "); i >= 0 {
					if _, err := fmt.Sscanf(lines.Text()[i:], "pid %d", &pid); err == nil {
						pids = append(pids, pid)
					}
				}
			}
			if len(pids) < 2 {
				t.Fatal("the host said nothing")
			}
			if how == "stopped" {
				// These read no end of file: only the kernel can end them.
				for _, pid := range pids {
					freeze(t, pid)
				}
			}
			began := time.Now()
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for _, pid := range pids {
				eventually.Holds(t, fmt.Sprintf("pid %d is gone", pid), func() bool { return gone(pid) })
			}
			t.Logf("gone after %v", time.Since(began))
			_ = cmd.Wait()
		})
	}
}

// Go ends threads, and the kernel takes a thread for the parent.
func TestEndingThreadsEndNoPlugin(t *testing.T) {
	s := raise(t, play(t, playTalker))
	pid := s.until("running").PID
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			runtime.LockOSThread()
			time.Sleep(time.Millisecond)
		})
	}
	wg.Wait()
	if err := s.hooks.OnPromote(within(t, limit), leading(1)); err != nil {
		t.Fatal(err)
	}
	if st := s.hooks.Status(); st.PID != pid || gone(pid) {
		t.Errorf("status %+v", st)
	}
}

func TestCrashCyclesLeakNothing(t *testing.T) {
	c := play(t, playTalker)
	s := raise(t, c, func(p *plugin) { p.hurry = true })
	named := s.hooks.(*plugin)
	cycle := func() {
		var pid int
		eventually.Holds(t, "a process", func() bool { pid = s.hooks.Status().PID; return pid != 0 })
		syscall.Kill(pid, syscall.SIGKILL)
		eventually.Holds(t, "its end", func() bool { return s.hooks.Status().PID != pid })
	}
	resources := func() (goroutines, fds int, sockets []string) {
		s.until("running")
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		dir, err := socketDirOf(named)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(entries), dir
	}
	cycle()
	cycle()
	goroutines, fds, sockets := resources()
	for range 30 {
		cycle()
	}
	var g, f int
	var so []string
	// The last of the dead may still be on its way out.
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if g, f, so = resources(); g <= goroutines && f <= fds && len(so) <= len(sockets) {
			return
		}
	}
	buf := make([]byte, 1<<20)
	t.Errorf("goroutines %d, were %d; descriptors %d, were %d; sockets %v, were %v\n%s", g, goroutines, f, fds, so, sockets, buf[:runtime.Stack(buf, true)])
}

func socketDirOf(p *plugin) ([]string, error) {
	return filepath.Glob(filepath.Join(p.env.RuntimeDir, "*"))
}

func TestVerifiedBinaryIsTheOneThatRuns(t *testing.T) {
	t.Run("program", func(t *testing.T) {
		c := play(t, playTalker)
		sum := strings.Fields(output(t, "sha256sum", self(t)))[0]
		c.SHA256 = strings.ToUpper(sum)
		s := raiseUp(t, c)
		if err := s.hooks.OnPromote(within(t, limit), leading(1)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("replaced while it is compared", func(t *testing.T) {
		c := script(t, "x", "echo the good one >&2; sleep 60")
		sum := strings.Fields(output(t, "sha256sum", c.Command[0]))[0]
		b, err := findBinary(c.Command[0], "", sum)
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		evil := c.Command[0] + ".new"
		if err := os.WriteFile(evil, []byte("#!/bin/sh\necho the evil one\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(evil, c.Command[0]); err != nil {
			t.Fatal(err)
		}
		cmd := &exec.Cmd{Path: b.path, Args: []string{b.path}}
		b.useVerified(cmd)
		cmd.SysProcAttr = childAttr()
		cmd.SysProcAttr.Pdeathsig = 0
		out, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if line != "the good one\n" {
			t.Errorf("have %q", line)
		}
	})
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	b, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Skipf("%s: %v", name, err)
	}
	return string(b)
}

// What is not on the list does not reach a plugin, and what only the plugin
// should know does not reach its children.
func TestEnvironment(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/run/x")
	t.Setenv("SECRET_OF_THE_HOST", "x")
	t.Setenv("TZ", "UTC")
	c := play(t, playEnviron)
	c.Env = append(c.Env, "MINE=yes", "LISTEN_FDS=3", "PLUGIN_MIN_PORT=1", "TZ=Asia/Tokyo")
	s := raiseUp(t, c)
	if err := s.hooks.OnPromote(within(t, limit), leading(1)); err != nil {
		t.Fatal(err)
	}
	s.printed("end of environment")
	var keys []string
	for _, line := range s.output() {
		if e, ok := strings.CutPrefix(line, "environ: env "); ok {
			keys = append(keys, e)
		}
	}
	for _, e := range keys {
		key, _, _ := strings.Cut(e, "=")
		if key != markName && (foreign(key) || key == "SECRET_OF_THE_HOST" || strings.HasPrefix(key, "STANDBYD_PLUGIN")) {
			t.Errorf("the plugin's children see %s", e)
		}
	}
	if !slices.Contains(keys, "MINE=yes") || !slices.Contains(keys, "TZ=Asia/Tokyo") {
		t.Errorf("have %v", keys)
	}
	s.printed("environ: fds 0 1 2")
}

type environ struct{}

func (environ) OnPromote(context.Context, plugins.Transition) error {
	cmd := exec.Command("sh", "-c", `env | sed 's/^/env /'; echo fds $(ls /proc/$$/fd | sort -n); echo end of environment`)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr
	return cmd.Run()
}

var playEnviron = puppet("environ", func() { plugins.Serve(environ{}) })

func TestCheck(t *testing.T) {
	c := play(t, playTalker)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if err := Check(within(t, limit), c); err != nil {
		t.Errorf("good: %v", err)
	}
	c.Table = map[string]any{"every": "10"}
	if err := Check(within(t, limit), c); err == nil || !strings.Contains(err.Error(), `config key "every": "10" is no duration`) {
		t.Errorf("bad value: %v", err)
	}
	if err := Check(within(t, limit), Config{Name: "x", Command: []string{"/no/such"}}); err == nil || !strings.Contains(err.Error(), "check plugin x: /no/such does not exist") {
		t.Errorf("missing: %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("left in the folder for temporary files: %v, %v", left, err)
	}
}

func TestLongRuntimeFolderIsSaidAtOnce(t *testing.T) {
	named, err := New(play(t, playTalker))
	if err != nil {
		t.Fatal(err)
	}
	err = named.Hooks.Start(t.Context(), supervisor.HookEnv{RuntimeDir: "/tmp/" + strings.Repeat("x", 90)})
	if err == nil || !strings.Contains(err.Error(), "choose a shorter runtime_dir") {
		t.Errorf("have %v", err)
	}
	if st := named.Hooks.Status(); st.State != "failed" || !strings.Contains(st.LastError, "too long") {
		t.Errorf("status %+v", st)
	}
	if named.Hooks.(supervisor.PrePromoter).HasPrePromote() {
		t.Error("a gate")
	}
	if err := named.Hooks.OnDemote(t.Context(), leading(1)); err != nil {
		t.Error(err)
	}
	if err := named.Hooks.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
