//go:build linux

package host

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/plugins"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
)

// striker has a duty that does nothing but check and act, as fast as it can.
// Each act is noted with a time from before its check.
type striker struct {
	plugins.Duty
	conf struct{ File string }
}

func (s *striker) Configure(_ context.Context, table plugins.Table) error {
	return table.Decode(&s.conf)
}

func (s *striker) strike(ctx context.Context, t plugins.Transition) error {
	f, err := os.OpenFile(s.conf.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		before := proc.MonoNow()
		if err := s.Check(); err != nil {
			return nil
		}
		fmt.Fprintf(f, "act %s %d\n", t.Token.Decimal(), before)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Millisecond):
		}
	}
}

var (
	playStriker = puppet("striker", func() {
		s := &striker{}
		s.Start = s.strike
		plugins.Serve(s)
	})
	playLeader = puppet("leader", func() {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err := coord.Run(ctx, func(ctx context.Context, l *coord.Leadership) error {
			write(os.Getenv("TEST_FILE"), "lead %s %d", l.Token().Decimal(), proc.MonoNow())
			<-ctx.Done()
			return nil
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
	playDaemon = puppet("daemon", func() {
		dir := os.Getenv("TEST_DIR")
		file := filepath.Join(dir, "acts")
		hooks, err := New(Config{Name: playStriker, Command: []string{os.Args[0]}, Env: []string{puppetKey + "=" + playStriker}, Table: map[string]any{"file": file}})
		if err != nil {
			panic(err)
		}
		r := supervisor.DefaultRole()
		r.Name, r.Command, r.Dir = "kv", []string{os.Args[0]}, dir
		r.Env = map[string]string{puppetKey: playLeader, "TEST_FILE": file}
		r.Tick, r.Grace, r.RestartDelay, r.Burst, r.Failovers = 20*time.Millisecond, 10, 10*time.Millisecond, 100000, 100000
		r.Hooks = []supervisor.NamedHooks{hooks}
		sup, err := supervisor.New(supervisor.Config{RuntimeDir: dir + "/run", StateDir: dir + "/state", Roles: []supervisor.RoleConfig{r}})
		if err != nil {
			panic(err)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		go func() {
			for ; ; time.Sleep(10 * time.Millisecond) {
				s := sup.Snapshot()
				if len(s.Roles) != 1 || len(s.Roles[0].Plugins) != 1 {
					continue
				}
				b, _ := json.Marshal(view{s.Roles[0].LeaderPID, s.Roles[0].Token, s.Roles[0].Plugins[0].PID, s.Roles[0].Plugins[0].State})
				if os.WriteFile(dir+"/view.new", b, 0o644) == nil {
					os.Rename(dir+"/view.new", dir+"/view")
				}
			}
		}()
		if err := sup.Run(ctx); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
)

// view is what the daemon says of itself.
type view struct {
	Leader int
	Token  role.Token
	Plugin int
	State  string
}

// No act behind a Check happens without leadership, whatever is killed or
// stopped: no check that succeeded was begun after a later leader had begun.
func TestNothingIsDoneWithoutLeadership(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	dir := shortdir.New(t)
	c := play(t, playDaemon)
	play(t, playStriker)
	play(t, playLeader)
	start := func() *exec.Cmd {
		cmd := exec.Command(c.Command[0])
		cmd.Env = append(os.Environ(), c.Env[0], "TEST_DIR="+dir)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	look := func() (v view) {
		b, err := os.ReadFile(dir + "/view")
		if err == nil {
			_ = json.Unmarshal(b, &v)
		}
		return v
	}
	daemon := start()
	defer func() {
		_ = daemon.Process.Signal(syscall.SIGCONT)
		_ = daemon.Process.Signal(syscall.SIGTERM)
		ended := make(chan error, 1)
		go func() { ended <- daemon.Wait() }()
		select {
		case <-ended:
		case <-time.After(limit):
			_ = daemon.Process.Kill()
			t.Error("the daemon does not end")
		}
	}()
	at := func(v view) bool { return v.State == "leading" && v.Leader != 0 }
	kill := func(pid int, sig syscall.Signal) {
		if pid > 0 {
			_ = syscall.Kill(pid, sig)
		}
	}
	pause := func(pid int, d time.Duration) {
		kill(pid, syscall.SIGSTOP)
		time.Sleep(d)
		kill(pid, syscall.SIGCONT)
	}
	var last role.Token
	const rounds = 24
	for round := range rounds {
		var v view
		eventually.Holds(t, fmt.Sprintf("round %d: led, and the plugin knows", round), func() bool { v = look(); return at(v) && v.Token >= last })
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
		switch fault := round % 8; fault {
		case 0:
			kill(v.Leader, syscall.SIGKILL)
		case 1: // nobody tells the plugin
			kill(daemon.Process.Pid, syscall.SIGSTOP)
			kill(v.Leader, syscall.SIGKILL)
			time.Sleep(300 * time.Millisecond)
			kill(daemon.Process.Pid, syscall.SIGCONT)
		case 2:
			kill(v.Leader, syscall.SIGSTOP) // the fence ends it
		case 3:
			kill(v.Plugin, syscall.SIGKILL)
			kill(v.Leader, syscall.SIGKILL)
		case 4:
			kill(v.Plugin, syscall.SIGSTOP)
			kill(v.Leader, syscall.SIGKILL)
			time.Sleep(200 * time.Millisecond)
			kill(v.Plugin, syscall.SIGCONT)
		case 5: // both at once
			_ = daemon.Process.Kill()
			kill(v.Leader, syscall.SIGKILL)
			_ = daemon.Wait()
			eventually.Holds(t, "the plugin is gone", func() bool { return gone(v.Plugin) })
			_ = os.Remove(dir + "/view")
			daemon = start()
		case 6:
			_ = daemon.Process.Kill()
			_ = daemon.Wait()
			eventually.Holds(t, "the plugin is gone", func() bool { return gone(v.Plugin) })
			_ = os.Remove(dir + "/view")
			daemon = start()
			continue // the same leader goes on
		case 7: // for less than the grace: nothing happens
			pause(v.Leader, 50*time.Millisecond)
			continue
		}
		last = v.Token + 1
	}
	eventually.Holds(t, "led at last", func() bool { v := look(); return at(v) && v.Token >= last })
	judge(t, filepath.Join(dir, "acts"))
}

// judge reads the file of acts and leads.
func judge(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type mark struct{ token, at uint64 }
	var leads, acts []mark
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue // its writer was killed
		}
		token, _ := strconv.ParseUint(f[1], 10, 64)
		at, _ := strconv.ParseUint(f[2], 10, 64)
		if f[0] == "lead" {
			leads = append(leads, mark{token, at})
		} else {
			acts = append(acts, mark{token, at})
		}
	}
	byToken := map[uint64]int{}
	for _, a := range acts {
		byToken[a.token]++
		for _, l := range leads {
			if l.token > a.token && a.at > l.at {
				t.Errorf("an act of token %v whose check began %v after the lead of %v", role.Token(a.token), time.Duration(a.at-l.at), role.Token(l.token))
			}
		}
	}
	if len(leads) < 10 || len(byToken) < 10 {
		t.Errorf("%d leads, acts of %d tokens: too few to show anything", len(leads), len(byToken))
	}
	t.Logf("%d leads, %d acts of %d tokens", len(leads), len(acts), len(byToken))
}
