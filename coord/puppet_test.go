//go:build linux

package coord_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
)

// TestMain turns this binary into a worker when it is started as one.
func TestMain(m *testing.M) {
	if os.Getenv("COORD_PUPPET") != "" {
		os.Exit(puppet())
	}
	os.Exit(m.Run())
}

// patience bounds every wait for an event; it is no measure of anything.
const patience = 60 * time.Second

// puppet is a worker that does what its stdin says and tells on stdout what
// happens to it, a line each.
func puppet() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	orders := make(chan string)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			orders <- in.Text()
		}
	}()
	has := func(word string) bool {
		return strings.Contains(","+os.Getenv("COORD_PUPPET")+",", ","+word+",")
	}
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }

	lead := func(ctx context.Context, l *coord.Leadership) error {
		if err := l.Check(); err != nil {
			say("BROKEN: leads and is fenced")
		}
		if has("gone") {
			say("gone %v", l.Predecessor().Gone(ctx))
		}
		unlock, err := exclusive(os.Getenv("COORD_PUPPET_LOCK"))
		if err != nil {
			say("BROKEN: two leaders: %v", err)
		}
		defer unlock()
		say("lead %d", l.Token().Term())
		say("before %#x", l.Predecessor().InFlight())
		if has("spin") {
			// No timer, no system call: nothing that tells the runtime's monitor.
			<-ctx.Done()
			for since := time.Now(); time.Since(since) < 2*time.Second; {
			}
			say("returns")
			return nil
		}
		pulse := time.NewTicker(5 * time.Millisecond)
		defer pulse.Stop()
		end, moving, told := ctx.Done(), true, false
		for {
			select {
			case <-end:
				if !told {
					told = true
					say("cause %v", context.Cause(ctx))
					say("check %v", l.Check())
				}
				if !has("ignore") {
					say("returns")
					return nil
				}
				end = nil
			case <-pulse.C:
				if has("pulse") && moving {
					l.Member().Pulse()
				}
			case o := <-orders:
				switch o {
				case "return":
					say("returns")
					return nil
				case "error":
					say("returns")
					return errors.New("an error")
				case "panic":
					panic("as ordered")
				case "goexit":
					runtime.Goexit()
				case "stall":
					moving = false
				case "threads":
					// A goroutine that returns while it is locked takes its thread along.
					var all sync.WaitGroup
					for range 200 {
						all.Go(func() { runtime.LockOSThread() })
					}
					all.Wait()
					say("threads ended")
				case "exec":
					if err := syscall.Exec("/bin/sleep", []string{"sleep", "1000"}, nil); err != nil {
						say("exec %v", err)
					}
				case "resign":
					say("resign %v", l.Resign(context.Background()))
				case "mark":
					// Two units stay in flight, one is done.
					l.Member().Mark(3)
					l.Member().Mark(17)
					l.Member().Mark(63)
					l.Member().Clear(17)
					say("marked")
				case "check":
					say("check %v", l.Check())
				case "serve":
					ln, err := l.Listener("http")
					if err != nil {
						say("listener %v", err)
						continue
					}
					srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						fmt.Fprintf(w, "term %d", l.Token().Term())
					})}
					go srv.Serve(ln)
					defer srv.Close()
					say("serves")
				}
			}
		}
	}
	say("pid %d", os.Getpid())
	opts := []coord.Option{coord.WithWarmup(func(context.Context, *coord.Member) error {
		say("warm")
		return nil
	})}
	err := coord.Run(ctx, lead, opts...)
	say("run %v", err)
	if err != nil {
		return 1
	}
	return 0
}

// exclusive takes a lock that the kernel frees with the process: whoever leads
// while another one still exists cannot have it.
func exclusive(path string) (func(), error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return func() {}, err
	}
	return func() { f.Close() }, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// stage is one role under test, in a segment of its own.
type stage struct {
	*testing.T
	dir   string
	seg   *shm.Segment
	elec  *election.Election
	table *heartbeat.Table
	lock  string
	next  int
}

func newStage(t *testing.T, change func(*shm.Params)) *stage {
	t.Helper()
	dir := t.TempDir()
	p := shm.DefaultParams()
	p.Generation, p.Tick, p.Grace = 3, 10*time.Millisecond, 30
	p.Fence = shm.FenceProcess
	p.DrainLimit = patience
	if change != nil {
		change(&p)
	}
	seg, err := shm.Create(filepath.Join(dir, "segment"), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seg.Close() })
	s := &stage{T: t, dir: dir, seg: seg, elec: election.Attach(seg), table: heartbeat.NewTable(seg)}
	if p.Fence != shm.FenceToken {
		s.lock = filepath.Join(dir, "lock")
	}
	s.elec.SetControl(election.Control{Nominee: -1})
	return s
}

// actor is one worker process.
type actor struct {
	*testing.T
	name  string
	index int
	cmd   *exec.Cmd
	in    *os.File
	exit  chan struct{} // closed when it was reaped

	mu    sync.Mutex
	lines []string
	read  int // lines before it have been waited for
	more  chan struct{}
}

// enter starts a worker. habits are words of COORD_PUPPET.
func (s *stage) enter(habits string, env ...string) *actor {
	s.Helper()
	return s.enterWith(nil, append(env, "COORD_PUPPET=puppet,"+habits)...)
}

// enterWith starts a worker with files from descriptor 3 on.
func (s *stage) enterWith(files []*os.File, env ...string) *actor {
	s.Helper()
	a := &actor{T: s.T, name: "kv-" + strconv.Itoa(s.next), index: s.next, exit: make(chan struct{}), more: make(chan struct{}, 1)}
	s.next++
	exe, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	a.cmd = exec.Command(exe)
	a.cmd.Env = append(os.Environ(), append([]string{
		"COORD_PUPPET=puppet", "COORD_PUPPET_LOCK=" + s.lock,
		"STANDBYD_ROLE=kv", "STANDBYD_WORKER=" + a.name, "STANDBYD_INDEX=" + strconv.Itoa(a.index),
		"STANDBYD_SEGMENT=" + s.seg.Path(),
	}, env...)...)
	a.cmd.ExtraFiles = files
	stdin, in, err := os.Pipe()
	if err != nil {
		s.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		s.Fatal(err)
	}
	a.in, a.cmd.Stdin, a.cmd.Stdout, a.cmd.Stderr = in, stdin, stdout, stdout
	if err := a.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	stdin.Close()
	stdout.Close()
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			a.mu.Lock()
			a.lines = append(a.lines, lines.Text())
			a.mu.Unlock()
			a.ring()
		}
		out.Close()
		a.cmd.Wait()
		close(a.exit)
		a.ring()
	}()
	s.Cleanup(func() {
		a.cmd.Process.Kill()
		<-a.exit
		in.Close()
		said := a.said()
		if strings.Contains(said, "BROKEN") || s.Failed() {
			s.Errorf("%s (pid %d) said:\n%s", a.name, a.cmd.Process.Pid, said)
		}
	})
	return a
}

func (a *actor) ring() {
	select {
	case a.more <- struct{}{}:
	default:
	}
}

func (a *actor) said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.lines, "\n")
}

// expect waits for the next line that begins with prefix, and returns the rest
// of it.
func (a *actor) expect(prefix string) string {
	a.Helper()
	late := time.After(patience)
	for {
		a.mu.Lock()
		for a.read < len(a.lines) {
			line := a.lines[a.read]
			a.read++
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				a.mu.Unlock()
				return strings.TrimSpace(rest)
			}
		}
		a.mu.Unlock()
		select {
		case <-a.more:
			continue
		case <-a.exit:
			a.mu.Lock()
			rest := len(a.lines) - a.read
			a.mu.Unlock()
			if rest == 0 {
				a.Fatalf("%s ended before it said %q", a.name, prefix)
			}
		case <-late:
			a.Fatalf("%s did not say %q in %v", a.name, prefix, patience)
		}
	}
}

func (a *actor) order(o string) {
	a.Helper()
	if _, err := fmt.Fprintln(a.in, o); err != nil {
		a.Fatal(err)
	}
}

func (a *actor) signal(sig syscall.Signal) {
	a.Helper()
	if err := a.cmd.Process.Signal(sig); err != nil {
		a.Fatalf("signal %v to %s: %v", sig, a.name, err)
	}
}

// status waits for the end and returns the wait status.
func (a *actor) status() syscall.WaitStatus {
	a.Helper()
	select {
	case <-a.exit:
	case <-time.After(patience):
		a.Fatalf("%s did not end in %v", a.name, patience)
	}
	return a.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// until polls the segment: it holds what no process need announce.
func (s *stage) until(what string, ok func() bool) {
	s.Helper()
	late := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(late) {
			pid, term := s.elec.Owner()
			apid, aterm := s.elec.Active()
			s.Fatalf("not in %v: %s (owner %d/%d, active %d/%d, members %+v)", patience, what, pid, term, apid, aterm, s.table.Members())
		}
		time.Sleep(time.Millisecond)
	}
}

// leads waits until one of them leads in term, and returns it.
func (s *stage) leads(term int, among ...*actor) (leader *actor) {
	s.Helper()
	s.until(fmt.Sprintf("one leads in term %d", term), func() bool {
		for _, a := range among {
			if slices.Contains(strings.Split(a.said(), "\n"), fmt.Sprintf("lead %d", term)) {
				leader = a
			}
		}
		return leader != nil
	})
	leader.expect(fmt.Sprintf("lead %d", term))
	return leader
}

// epochs waits until n more epochs have passed: time as the members see it.
func (s *stage) epochs(n uint64) {
	s.Helper()
	end := s.elec.Epoch() + n
	s.until(fmt.Sprintf("%d epochs pass", n), func() bool { return int64(s.elec.Epoch()-end) >= 0 })
}

func (s *stage) member(a *actor) (heartbeat.Member, bool) {
	for _, m := range s.table.Members() {
		if m.Identity.PID == a.cmd.Process.Pid {
			return m, true
		}
	}
	return heartbeat.Member{}, false
}

// racing waits until the actors would claim.
func (s *stage) racing(actors ...*actor) {
	s.Helper()
	for _, a := range actors {
		s.until(a.name+" is in the race", func() bool {
			m, ok := s.member(a)
			return ok && m.Ready && m.Racing
		})
	}
}

// watched waits until an actor has reported progress, so that none is a hang.
func (s *stage) watched(a *actor) {
	s.Helper()
	s.until("the progress of "+a.name+" is watched", func() bool { m, ok := s.member(a); return ok && m.Watched })
}

// enterPair starts a leader and a standby.
func (s *stage) enterPair(habits string) (leader, standby *actor) {
	s.Helper()
	leader = s.enter(habits)
	if term := leader.expect("lead "); term != "1" {
		s.Fatalf("the first term is %s", term)
	}
	standby = s.enter(habits)
	s.racing(standby)
	return leader, standby
}

// gateAt is a control word whose gate has let pass terms up to granted.
func gateAt(granted uint64) election.Control {
	return election.Control{Gate: true, Nominee: -1, GrantedTerm: granted}
}

// resign asks the owner of the present term to give up.
func (s *stage) resign() {
	_, term := s.elec.Owner()
	s.elec.SetControl(election.Control{Nominee: -1, ResignTerm: term})
}
