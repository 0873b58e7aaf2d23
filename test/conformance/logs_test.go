//go:build linux

package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
)

// The test binary plays the workers that print, and their supervisor.
const (
	printerEnv    = "CONFORMANCE_PRINTER"
	supervisorEnv = "CONFORMANCE_LOG_SUPERVISOR"
)

func init() {
	supervisor.Stage()
	if kind := os.Getenv(printerEnv); kind != "" {
		os.Exit(print(kind))
	}
	if path := os.Getenv(supervisorEnv); path != "" {
		os.Exit(superviseLogs(path))
	}
}

// print is a worker that prints: "burst" all at once and then dies, "lines"
// numbered lines for ever, "spew" as fast as 200 MB/s.
func print(kind string) int {
	if kind == "burst" {
		var b bytes.Buffer
		for i := range 10000 {
			fmt.Fprintf(&b, "pid %d line %d\n", os.Getpid(), i)
		}
		os.Stdout.Write(b.Bytes())
		panic("last words")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		block := bytes.Repeat([]byte("a line of some length that is printed again and again\n"), 4000)
		began, sent := time.Now(), 0
		for i := 0; ; i++ {
			if kind == "lines" {
				fmt.Printf("pid %d line %d\n", os.Getpid(), i)
				time.Sleep(time.Millisecond)
				continue
			}
			os.Stdout.Write(block)
			sent += len(block)
			if ahead := time.Duration(float64(sent)/200e6*1e9) - time.Since(began); ahead > 0 {
				time.Sleep(ahead)
			}
		}
	}()
	if err := coord.Run(ctx, func(ctx context.Context, _ *coord.Leadership) error { <-ctx.Done(); return nil }); err != nil {
		return 1
	}
	return 0
}

type logsTold struct {
	RuntimeDir, StateDir string
	Roles                []supervisor.RoleConfig
}

// superviseLogs runs a supervisor, and shows its status in a file.
func superviseLogs(path string) int {
	b, err := os.ReadFile(path)
	var c logsTold
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	var sup *supervisor.Supervisor
	if err == nil {
		sup, err = supervisor.New(supervisor.Config{RuntimeDir: c.RuntimeDir, StateDir: c.StateDir, Roles: c.Roles})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		for ; ; time.Sleep(50 * time.Millisecond) {
			b, _ := json.Marshal(sup.Snapshot())
			os.WriteFile(path+".new", b, 0o600)
			os.Rename(path+".new", path+".status")
		}
	}()
	if err := sup.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// logsRig is one role under a supervisor in a process of its own.
type logsRig struct {
	t    *testing.T
	dir  string
	conf string
	sup  *exec.Cmd
}

func newLogsRig(t *testing.T, kind string, change func(*supervisor.RoleConfig)) *logsRig {
	t.Helper()
	dir := shortdir.New(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := supervisor.DefaultRole()
	r.Name, r.Command, r.Dir = "kv", []string{exe}, dir
	r.Env = map[string]string{printerEnv: kind}
	r.RestartDelay, r.RestartMaxDelay, r.Burst, r.Failovers = 10*time.Millisecond, 10*time.Millisecond, 1000000, 1000000
	r.LogMaxBytes = 1 << 30
	if change != nil {
		change(&r)
	}
	b, err := json.Marshal(logsTold{filepath.Join(dir, "run"), filepath.Join(dir, "state"), []supervisor.RoleConfig{r}})
	g := &logsRig{t: t, dir: dir, conf: filepath.Join(dir, "told")}
	if err == nil {
		err = os.WriteFile(g.conf, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if g.sup == nil || g.sup.ProcessState != nil {
			g.start() // to end what it adopts
		}
		g.sup.Process.Signal(syscall.SIGTERM)
		g.sup.Wait()
	})
	g.start()
	return g
}

func (g *logsRig) start() {
	g.t.Helper()
	exe, _ := os.Executable()
	g.sup = exec.Command(exe)
	g.sup.Env = append(os.Environ(), supervisorEnv+"="+g.conf)
	g.sup.Stderr = os.Stderr
	os.Remove(g.conf + ".status")
	if err := g.sup.Start(); err != nil {
		g.t.Fatal(err)
	}
}

func (g *logsRig) status() (r supervisor.RoleStatus) {
	b, err := os.ReadFile(g.conf + ".status")
	var s supervisor.Snapshot
	if err == nil && json.Unmarshal(b, &s) == nil && len(s.Roles) == 1 {
		r = s.Roles[0]
	}
	return r
}

func (g *logsRig) until(what string, ok func() bool) {
	g.t.Helper()
	eventually.Shows(g.t, what, func() (bool, string) {
		if ok() {
			return true, ""
		}
		b, _ := json.Marshal(g.status())
		return false, string(b)
	})
}

// full waits until somebody leads and everybody is ready.
func (g *logsRig) full() supervisor.RoleStatus {
	g.t.Helper()
	var r supervisor.RoleStatus
	g.until("the role is full", func() bool {
		r = g.status()
		for _, w := range r.Workers {
			if !w.Ready {
				return false
			}
		}
		return r.Leader != "" && r.LogReader != nil && r.LogReader.PID != 0
	})
	return r
}

func (g *logsRig) log(worker int) string {
	return filepath.Join(g.dir, "state", "logs", fmt.Sprintf("kv-%d.log", worker))
}

// numbers reads "pid P line N" in a log: for each pid, how many follow each
// other from 0 on. A gap is an error.
func (g *logsRig) numbers(worker int) map[int]int {
	g.t.Helper()
	f, err := os.Open(g.log(worker))
	if err != nil {
		return nil
	}
	defer f.Close()
	next := map[int]int{}
	for s := bufio.NewScanner(f); s.Scan(); {
		_, text, _ := strings.Cut(s.Text(), " ")
		var pid, n int
		if c, _ := fmt.Sscanf(text, "pid %d line %d", &pid, &n); c != 2 {
			continue
		}
		if n != next[pid] {
			g.t.Fatalf("kv-%d: after line %d of pid %d comes %d", worker, next[pid]-1, pid, n)
		}
		next[pid]++
	}
	return next
}

func rss(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(v)[0])
			return kb << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// long is the duration of what takes a minute in `make conformance`.
func long(short, full time.Duration) time.Duration {
	if os.Getenv("CONFORMANCE") != "" {
		return full
	}
	return short
}

// TestA22_LogTroubleDoesNotBlockTheWorker: the log is deleted, cannot be
// written, and nobody reads; the workers print and beat on.
func TestA22_LogTroubleDoesNotBlockTheWorker(t *testing.T) {
	t.Parallel()
	g := newLogsRig(t, "lines", nil)
	before := g.full()
	ok := func() {
		t.Helper()
		if now := g.full(); now.Term != before.Term || now.LeaderPID != before.LeaderPID {
			t.Fatalf("the leader changed: %d in term %d, was %d in term %d", now.LeaderPID, now.Term, before.LeaderPID, before.Term)
		}
	}
	grows := func(what string) {
		t.Helper()
		size := func() int64 {
			fi, err := os.Stat(g.log(0))
			if err != nil {
				return 0
			}
			return fi.Size()
		}
		from := size()
		g.until("lines come after: "+what, func() bool { return size() > from+1000 })
	}
	grows("the start")
	os.Remove(g.log(0))
	grows("the log was deleted")
	// A log that nobody can write to: a folder in its place.
	if err := os.Rename(filepath.Join(g.dir, "state", "logs"), filepath.Join(g.dir, "state", "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "state", "logs"), nil, 0); err != nil {
		t.Fatal(err)
	}
	g.until("status counts the lines that are dropped", func() bool { return g.status().DroppedLines > 100 })
	ok()
	os.Remove(filepath.Join(g.dir, "state", "logs"))
	grows("the folder is usable again")
	// Who reads is stopped.
	reader := g.status().LogReader.PID
	syscall.Kill(reader, syscall.SIGSTOP)
	grows("the reader was stopped")
	syscall.Kill(reader, syscall.SIGCONT)
	ok()
	for _, w := range g.status().Workers {
		if w.Restarts != 0 {
			t.Errorf("%s was restarted", w.Name)
		}
	}
}

// TestA22_FullDisk: the same on a disk without space.
func TestA22_FullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	g := newLogsRig(t, "spew", func(r *supervisor.RoleConfig) { r.LogMaxBytes = 1 << 20 })
	before := g.full()
	logs := filepath.Join(g.dir, "state", "logs")
	if err := unix.Mount("tmpfs", logs, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(logs, unix.MNT_DETACH) })
	g.until("status counts the lines that are dropped", func() bool { return g.status().DroppedLines > 100000 })
	if now := g.full(); now.Term != before.Term {
		t.Errorf("term %d, was %d", now.Term, before.Term)
	}
}

// TestA23_MemoryDoesNotGrowWithOutput: a worker prints 200 MB/s.
func TestA23_MemoryDoesNotGrowWithOutput(t *testing.T) {
	g := newLogsRig(t, "lines", nil)
	quiet := g.full()
	supQuiet, readerQuiet := rss(t, g.sup.Process.Pid), rss(t, quiet.LogReader.PID)

	f := newLogsRig(t, "spew", func(r *supervisor.RoleConfig) { r.Workers, r.LogMaxBytes, r.LogKeep = 1, 10<<20, 2 })
	before := f.full()
	var supMost, readerMost int
	for end := time.Now().Add(long(5*time.Second, time.Minute)); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		supMost, readerMost = max(supMost, rss(t, f.sup.Process.Pid)), max(readerMost, rss(t, before.LogReader.PID))
	}
	t.Logf("standbyd: %d MiB at most, %d MiB beside quiet workers; log reader: %d and %d MiB",
		supMost>>20, supQuiet>>20, readerMost>>20, readerQuiet>>20)
	const allowed = 20e6
	if supMost-supQuiet > allowed || readerMost-readerQuiet > allowed {
		t.Errorf("memory grew by more than %.0f MB", allowed/1e6)
	}
	if now := f.full(); now.Term != before.Term || now.LeaderPID != before.LeaderPID {
		t.Errorf("a beat was missed: term %d, was %d", now.Term, before.Term)
	}
}

// TestA24_LastWordsAreKept: workers print 10,000 lines and crash at once.
func TestA24_LastWordsAreKept(t *testing.T) {
	t.Parallel()
	g := newLogsRig(t, "burst", func(r *supervisor.RoleConfig) { r.Workers = 1 })
	lives := int(long(10, 200))
	g.until("it has died often enough", func() bool { r := g.status(); return len(r.Workers) == 1 && r.Workers[0].Restarts >= lives })
	words := g.status().Workers[0].LastExit.LastLines
	if text := strings.Join(words, "\n"); !strings.Contains(text, "goroutine 1") {
		t.Errorf("the last exit shows %q", words)
	}
	g.sup.Process.Signal(syscall.SIGTERM)
	g.sup.Wait()
	whole := 0
	for pid, n := range g.numbers(0) {
		if n == 10000 {
			whole++
		} else if n < 10000 {
			t.Logf("pid %d has %d lines", pid, n) // stopped by us in the middle
		}
	}
	if whole < lives {
		t.Errorf("%d lives are whole, want %d", whole, lives)
	}
	b, _ := os.ReadFile(g.log(0))
	if n := bytes.Count(b, []byte("panic: last words")); n < lives {
		t.Errorf("%d panics are in the log, want %d", n, lives)
	}
}

// TestA24_NoGapWhenStandbydDies: it is killed while workers print; none of them
// dies, and not a line is missing after the next one has adopted them.
func TestA24_NoGapWhenStandbydDies(t *testing.T) {
	t.Parallel()
	g := newLogsRig(t, "lines", nil)
	before := g.full()
	for range int(long(2, 20)) {
		g.sup.Process.Kill()
		g.sup.Wait()
		from := map[int]int{}
		for i := range before.Workers {
			from[i] = g.numbers(i)[before.Workers[i].PID]
		}
		g.until("lines are kept without a supervisor", func() bool {
			for i := range before.Workers {
				if g.numbers(i)[before.Workers[i].PID] < from[i]+200 {
					return false
				}
			}
			return true
		})
		g.start()
		now := g.full()
		for i, w := range now.Workers {
			if w.PID != before.Workers[i].PID {
				t.Errorf("%s was replaced", w.Name)
			}
		}
		if now.LogReader.PID != before.LogReader.PID {
			t.Errorf("log reader %d was replaced by %d", before.LogReader.PID, now.LogReader.PID)
		}
	}
}
