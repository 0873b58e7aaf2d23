//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestMain lets the test binary play the processes that are judged.
func TestMain(m *testing.M) {
	switch os.Getenv("PROC_TEST_ROLE") {
	case "sleep":
		time.Sleep(time.Hour)
	case "remember":
		remember()
	case "restless":
		restless()
	case "main-thread-exits":
		// The main thread ends, as C's pthread_exit would do it, and others live on.
		runtime.LockOSThread()
		go func() {
			os.Stdout.WriteString("up\n")
			time.Sleep(time.Hour)
		}()
		time.Sleep(50 * time.Millisecond)
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	os.Exit(m.Run())
}

func start(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "PROC_TEST_ROLE="+role)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

func TestJudgeFollowsALife(t *testing.T) {
	c := start(t, "sleep")
	id, err := Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if v := Judge(id); v != Alive {
		t.Fatalf("a sleeping process is %v", v)
	}
	h, err := OpenHandle(id)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	c.Process.Signal(syscall.SIGSTOP)
	if v := h.Judge(); v != Alive {
		t.Fatalf("a stopped process is %v", v)
	}
	if err := h.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-h.Done()
	// Not reaped yet: a zombie without other tasks is gone.
	if v := Judge(id); v != Gone {
		t.Fatalf("a zombie is %v", v)
	}
	if v := h.Judge(); v != Gone {
		t.Fatalf("a zombie is %v through its handle", v)
	}
	c.Wait()
	if v := Judge(id); v != Gone {
		t.Fatalf("a reaped process is %v", v)
	}
	if err := h.Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Fatalf("signal to a reaped process: %v", err)
	}
	if _, err := OpenHandle(id); !errors.Is(err, ErrGone) {
		t.Fatalf("handle on a reaped process: %v", err)
	}
}

func TestAnotherStartTimeIsAnotherProcess(t *testing.T) {
	c := start(t, "sleep")
	id, err := Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	id.Start--
	if v := Judge(id); v != Gone {
		t.Fatalf("pid of another process: %v, want gone", v)
	}
	if _, err := OpenHandle(id); !errors.Is(err, ErrGone) {
		t.Fatalf("handle: %v", err)
	}
	if c.Process.Signal(syscall.Signal(0)) != nil {
		t.Fatal("the innocent process was hurt")
	}
}

func TestAThreadIsNoProcess(t *testing.T) {
	tids := make(chan int)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		runtime.LockOSThread()
		tids <- syscall.Gettid()
		<-stop
	}()
	tid := <-tids
	if tid == os.Getpid() {
		t.Skip("the goroutine got the main thread")
	}
	if _, err := Of(tid); !errors.Is(err, ErrGone) {
		t.Fatalf("Of(thread id): %v, want ErrGone", err)
	}
	st, err := readStat(tid, 0)
	if err != nil {
		t.Fatal(err)
	}
	me, _ := Self()
	me.PID, me.Start = tid, st.start
	if v := Judge(me); v != Gone {
		t.Fatalf("thread id with its own start time: %v, want gone", v)
	}
}

func TestZombieMainThreadWithLivingOnesIsAlive(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "PROC_TEST_ROLE=main-thread-exits")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { c.Process.Kill(); c.Wait() }()
	id, err := Of(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 8))
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		st, err := readStat(id.PID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if st.state == 'Z' {
			break
		}
		if time.Now().After(deadline) {
			t.Skip("the main goroutine was not on the main thread")
		}
	}
	if v := Judge(id); v != Alive {
		t.Fatalf("state Z with living threads: %v, want alive", v)
	}
}

func TestForeignIdentitiesProveNothingByPid(t *testing.T) {
	me, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	other := me
	other.Boot++
	if v := Judge(other); v != Gone {
		t.Errorf("another machine boot: %v, want gone", v)
	}
	other = me
	other.PIDNS++
	other.PID = 1 << 21
	if v := Judge(other); v != Alive {
		t.Errorf("another pid namespace: %v, want alive", v)
	}
	if v := Judge(Identity{PID: 1 << 21}); v != Alive {
		t.Errorf("unknown boot: %v, want alive", v)
	}
}

func TestParseStatSplitsAfterTheLastParenthesis(t *testing.T) {
	line := "42 (a) R 1 (b) S 1 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 6 0 12345 1 1 0"
	st, err := parseStat([]byte(line))
	if err != nil || st.state != 'S' || st.start != 12345 || st.flags != 4194304 {
		t.Fatalf("%+v, %v", st, err)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 1", "42 (x) S 1 42 42 0 -1 f 1 0 0 0 0 0 0 0 20 0 6 0 12345"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestHandlesLeakNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	me, _ := Self()
	for range 200 {
		h, err := OpenHandle(me)
		if err != nil {
			t.Fatal(err)
		}
		h.Close()
	}
	eventually.Shows(t, fmt.Sprintf("%d goroutines, as before", before), func() (bool, string) {
		n := runtime.NumGoroutine()
		return n <= before, fmt.Sprint(n)
	})
}
