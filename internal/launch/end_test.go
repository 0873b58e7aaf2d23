//go:build unix

package launch

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

func TestPeekThenReap(t *testing.T) {
	p := start(t, self("exit", "7"))
	if _, ok := p.Peek(); ok {
		t.Fatal("Peek says that a waiting process has ended")
	}
	if err := p.Reap(); !errors.Is(err, ErrRunning) {
		t.Fatalf("Reap of a running process: %v", err)
	}
	release(t, p)
	want := Status{Code: 7, Known: true}
	for range 3 {
		if s := ended(t, p); s != want {
			t.Fatalf("ended with %v, want %v", s, want)
		}
	}
	if runtime.GOOS == "linux" {
		if now, err := proc.Of(p.Identity().PID); err != nil || now != p.Identity() {
			t.Errorf("before Reap the zombie must keep the pid, but: %v, %v", now, err)
		}
	}
	for range 2 {
		if err := p.Reap(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := proc.Of(p.Identity().PID); err == nil {
		t.Error("after Reap the pid is still there")
	}
	if s := ended(t, p); s != want {
		t.Errorf("after Reap Peek says %v", s)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, proc.ErrGone) {
		t.Errorf("Signal after Reap: %v", err)
	}
	if err := p.KillGroup(); !errors.Is(err, ErrReaped) {
		t.Errorf("KillGroup after Reap: %v", err)
	}
}

func TestSignalledStatus(t *testing.T) {
	p := start(t, self("hang"))
	release(t, p)
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if s := ended(t, p); s != (Status{Code: -1, Signal: syscall.SIGKILL, Known: true}) {
		t.Errorf("ended with %v", s)
	}
}

func TestKillGroupReachesGrandchildrenOfADeadProcess(t *testing.T) {
	out := output(t)
	spec := self("forks")
	spec.Args[0], spec.Stdout = testBinary, out
	p := start(t, spec)
	release(t, p)
	ended(t, p)
	pid, err := strconv.Atoi(values(read(t, out), "")["child"])
	if err != nil {
		t.Fatalf("it said %q", read(t, out))
	}
	child, err := proc.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.KillGroup(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the grandchild is gone", func() bool { return proc.Judge(child) == proc.Gone })
}

// TestNothingLeaks starts and ends 200 processes, several at a time, and counts
// what is left.
func TestNothingLeaks(t *testing.T) {
	before := openFDs(t)
	goroutines := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				code := (w*50 + i) % 256
				spec := Spec{Path: "/bin/sh", Args: []string{"sh", "-c", "exit " + strconv.Itoa(code)}, Umask: -1, Staged: i%4 == 0}
				p, err := Start(spec)
				if err != nil {
					t.Error(err)
					return
				}
				if spec.Staged {
					if err := p.Release(); err != nil {
						t.Error(err)
					}
				}
				<-p.Done()
				if s, ok := p.Peek(); !ok || s != (Status{Code: code, Known: true}) {
					t.Errorf("ended with %v, want exit status %d", s, code)
				}
				if err := errors.Join(p.KillGroup(), p.Reap(), p.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	eventually.Holds(t, "goroutines are gone", func() bool { return runtime.NumGoroutine() <= goroutines })
	if after := openFDs(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func openFDs(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestNoThreadPerChild has 40 children waited for at once.
func TestNoThreadPerChild(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems need a thread for each child")
	}
	threads := func() int {
		b, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "Threads:"); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(v))
				return n
			}
		}
		t.Fatal("no Threads: line")
		return 0
	}
	before := threads()
	for range 40 {
		start(t, Spec{Path: "/bin/sleep", Args: []string{"sleep", "1000"}, Umask: -1})
	}
	if after := threads(); after > before+10 {
		t.Errorf("%d threads before, %d with 40 children", before, after)
	}
}

func TestAdopt(t *testing.T) {
	p := start(t, self("exit", "9"))
	a, err := Adopt(p.Identity())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, ok := a.Peek(); ok || a.Own() {
		t.Error("an adopted process that runs has ended, or is our own")
	}
	release(t, p)
	ended(t, p)
	s := ended(t, a)
	if runtime.GOOS == "linux" && os.Getuid() == 0 && (s != Status{Code: 9, Known: true}) {
		t.Errorf("as a zombie: %v", s)
	}
	if err := errors.Join(a.KillGroup(), a.Reap()); err != nil {
		t.Error(err)
	}
	p.Reap()
	if s2 := ended(t, a); s2 != s {
		t.Errorf("reaped: %v, before: %v", s2, s)
	}
	if _, err := Adopt(p.Identity()); !errors.Is(err, proc.ErrGone) {
		t.Errorf("adopt a dead process: %v", err)
	}
	wrong := start(t, self("hang")).Identity()
	wrong.Start++
	if _, err := Adopt(wrong); err == nil && runtime.GOOS == "linux" {
		t.Error("a process with another start time was adopted")
	}
}

// TestAdoptedExitStatusAfterReaping: the kernel keeps it with the pidfd.
func TestAdoptedExitStatusAfterReaping(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs PIDFD_GET_INFO")
	}
	p := start(t, self("exit", "11"))
	a, err := Adopt(p.Identity())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	release(t, p)
	ended(t, p)
	p.Reap()
	s := ended(t, a)
	if !s.Known {
		t.Skip("this kernel does not tell (needs Linux 6.15)")
	}
	if s.Code != 11 {
		t.Errorf("ended with %v, want exit status 11", s)
	}
}

func TestPoolOfThreadsMayEnd(t *testing.T) {
	// A parent-death signal would be tied to a thread; there is none.
	p := start(t, self("hang"))
	release(t, p)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(runtime.LockOSThread) // the thread ends with its goroutine
	}
	wg.Wait()
	if _, ok := p.Peek(); ok {
		t.Error("the child ended with a thread of its parent")
	}
}
