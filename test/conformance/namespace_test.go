//go:build linux

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// inNamespace runs the test again as the first process of a pid namespace,
// where pids can be had a second time, and is true in there. Outside it
// returns false when that run is over and judged.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(binEnv) != "" {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Skipf("private mounts: %v", err)
		}
		if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			t.Skipf("mount /proc: %v", err)
		}
		return true
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), binEnv+"="+standbyd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil && len(out) == 0:
		t.Skipf("cannot make a pid namespace (wants root): %v", err)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("it did not run:\n%s", out)
	}
	return false
}

// endOf kills a process whose parent we have become, and waits until its pid
// is free. For the first process of a namespace.
func endOf(t *testing.T, pid int) {
	t.Helper()
	syscall.Kill(pid, syscall.SIGKILL)
	bury(t, pid)
}

func bury(t *testing.T, pid int) {
	t.Helper()
	eventually.Holds(t, fmt.Sprintf("pid %d is free", pid), func() bool {
		syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		return syscall.Kill(pid, 0) != nil
	})
}

// stranger is a process that has nothing to do with anybody.
type stranger struct {
	t  *testing.T
	id proc.Identity
}

// takePID starts one that has this pid; nil if another one was faster.
func takePID(t *testing.T, pid int) *stranger {
	t.Helper()
	for range 50 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Skipf("choose a pid: %v", err)
		}
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if cmd.Process.Pid == pid {
			t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
			return &stranger{t, identity(t, pid)}
		}
		cmd.Process.Kill()
		cmd.Wait()
		if syscall.Kill(pid, 0) == nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// unharmed: it lives, and is nobody's worker.
func (s *stranger) unharmed(d *daemon) {
	s.t.Helper()
	if v := proc.Judge(s.id); v != proc.Alive {
		s.t.Errorf("the stranger with pid %d is %v", s.id.PID, v)
	}
	for worker, pid := range d.pids() {
		if pid == s.id.PID {
			s.t.Errorf("the stranger with pid %d is taken for %s", pid, worker)
		}
	}
}
