//go:build linux

package proc

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// restless is a process whose threads start and end without pause while others
// count in shared memory, and whose program replaces itself again and again if
// execs is not 0. Its main thread may end, too.
func restless() {
	f, err := os.OpenFile(os.Getenv("PROC_TEST_COUNTS"), os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 24, Max: 1 << 24}) // may be refused
	execs, _ := strconv.Atoi(os.Getenv("PROC_TEST_EXECS"))
	go func() {
		runtime.LockOSThread()
		for n := uint64(1); ; n++ {
			binary.NativeEndian.PutUint64(mem, n)
			time.Sleep(50 * time.Microsecond)
		}
	}()
	if execs > 0 {
		go func() {
			time.Sleep(10 * time.Millisecond)
			os.Setenv("PROC_TEST_EXECS", strconv.Itoa(execs-1))
			syscall.Exec(os.Args[0], os.Args, os.Environ())
		}()
	}
	if os.Getenv("PROC_TEST_MAIN") == "ends" && execs == 0 {
		go endThreads()
		time.Sleep(5 * time.Millisecond)
		runtime.LockOSThread()
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	endThreads()
}

// endThreads makes threads that end: a goroutine that returns while it is
// locked to its thread takes the thread along.
func endThreads() {
	for {
		done := make(chan bool)
		for range 4 {
			go func() {
				runtime.LockOSThread()
				done <- true
			}()
		}
		for range 4 {
			<-done
		}
	}
}

// TestNobodyAliveIsTakenForDying looks at processes that do everything that
// looks like an end, and at the ends of such processes: after a verdict of
// exiting or gone no code of them runs, and before it they keep their memory. Two hundred rounds; more with SOAK.
func TestNobodyAliveIsTakenForDying(t *testing.T) {
	victims := 20
	if testing.Short() {
		victims = 4
	}
	if os.Getenv("SOAK") != "" {
		victims *= 20
	}
	var debugged int
	for i := range victims {
		execs := 0
		if i%2 == 1 {
			execs = 1 << 20
		}
		v := newVictim(t, execs, i%8 == 6)
		for round := range 10 {
			v.alive("threads that start and end")
			switch round % 3 {
			case 0:
				v.signal(syscall.SIGSTOP)
				v.alive("stopped")
				v.signal(syscall.SIGCONT)
			case 1:
				// An exec waits for the debugger of the threads that it ends.
				if execs == 0 && v.debug(func() { v.alive("in a debugger's hands") }) {
					debugged++
				}
			}
		}
		v.end(i%3 == 0)
	}
	if debugged == 0 {
		t.Log("no debugger could be attached here")
	}
}

type victim struct {
	*testing.T
	cmd    *exec.Cmd
	id     Identity
	handle *Handle
	counts *os.File
}

func newVictim(t *testing.T, execs int, mainEnds bool) *victim {
	t.Helper()
	path := filepath.Join(t.TempDir(), "counts")
	if err := os.WriteFile(path, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	v := &victim{T: t, counts: f}
	v.cmd = exec.Command(os.Args[0])
	v.cmd.Env = append(os.Environ(), "PROC_TEST_ROLE=restless", "PROC_TEST_COUNTS="+path, "PROC_TEST_EXECS="+strconv.Itoa(execs), "GOTRACEBACK=crash")
	v.cmd.Dir = t.TempDir() // for the core
	if mainEnds {
		v.cmd.Env = append(v.cmd.Env, "PROC_TEST_MAIN=ends")
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.cmd.Process.Kill(); v.cmd.Wait() })
	if v.id, err = Of(v.cmd.Process.Pid); err == nil {
		v.handle, err = OpenHandle(v.id)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.handle.Close() })
	for late := time.Now().Add(time.Minute); v.counted() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("the process does not count")
		}
	}
	return v
}

// counted is how far the victim has counted; it may see the middle of a count.
func (v *victim) counted() uint64 {
	v.Helper()
	var b [8]byte
	if _, err := v.counts.ReadAt(b[:], 0); err != nil {
		v.Fatal(err)
	}
	return binary.NativeEndian.Uint64(b[:])
}

func (v *victim) alive(what string) {
	v.Helper()
	for range 15 {
		if got := v.handle.Judge(); got != Alive {
			v.Fatalf("%s: %v through its handle", what, got)
		}
		if got := Judge(v.id); got != Alive {
			v.Fatalf("%s: %v", what, got)
		}
		if freeMemory(v.handle.fd) == nil {
			v.Fatalf("%s: the kernel has freed its memory", what)
		}
	}
}

func (v *victim) signal(sig syscall.Signal) {
	v.Helper()
	if err := v.cmd.Process.Signal(sig); err != nil {
		v.Fatal(err)
	}
}

// debug runs f while this process is the debugger of the victim's main thread.
func (v *victim) debug(f func()) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid := v.cmd.Process.Pid
	if unix.PtraceSeize(pid) != nil {
		return false
	}
	stopped := unix.PtraceInterrupt(pid) == nil
	f()
	if stopped {
		// Only a tracee that has stopped can be let go; an exec stops it, too.
		var ws unix.WaitStatus
		for late := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			got, err := unix.Wait4(pid, &ws, unix.WALL|unix.WNOHANG, nil)
			if got == pid && err == nil {
				break
			}
			if err != nil && err != unix.EINTR || time.Now().After(late) {
				v.Fatalf("wait for the tracee: %v", err)
			}
		}
	}
	if err := unix.PtraceDetach(pid); err != nil {
		v.Fatal(err)
	}
	return true
}

// end kills the process and watches the verdict: once it is not alive, nothing
// of it counts any more. A process that dumps core is not to be held for dead
// before the dump is written.
func (v *victim) end(core bool) {
	v.Helper()
	sig := syscall.SIGKILL
	if core {
		sig = syscall.SIGABRT
	}
	v.signal(sig)
	patience := time.Now().Add(5 * time.Second)
	for late := time.Now().Add(time.Minute); v.handle.Judge() == Alive; {
		if time.Now().After(late) {
			v.Fatal("a killed process is alive")
		}
		if core && time.Now().After(patience) {
			core = false // an exec ended the thread that was to abort, say
			v.handle.Signal(syscall.SIGKILL)
		}
	}
	before := v.counted()
	time.Sleep(3 * time.Millisecond)
	if after := v.counted(); after != before {
		v.Fatalf("it was judged %v, and went on", v.handle.Judge())
	}
}
