//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A worker dies while nobody supervises, and a stranger gets its pid. The next
// standbyd neither takes the stranger for the worker nor harms it.
//
// Pids are made to repeat in a pid namespace of the test's own: the test runs
// itself again in there.
func TestPIDReuse(t *testing.T) {
	if os.Getenv("E2E_NAMESPACE") == "" {
		t.Parallel()
		cmd := exec.Command(os.Args[0], "-test.run=^TestPIDReuse$", "-test.v")
		cmd.Env = append(os.Environ(), "E2E_NAMESPACE=1", "E2E_BIN="+bin)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil && len(out) == 0:
			t.Skipf("cannot make a pid namespace (wants root): %v", err)
		case err != nil:
			t.Errorf("%v\n%s", err, out)
		case strings.Contains(string(out), "SKIP"):
			t.Skipf("%s", out)
		}
		return
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Skipf("private mounts: %v", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Skipf("mount /proc: %v", err)
	}
	d := configure(t, storeConfig(""))
	d.start()
	before := d.whole("kv")
	l := write(t, d.url, 2)
	var victim int
	var stranger *exec.Cmd
	for range 5 {
		l.more(3)
		d.end(syscall.SIGKILL)
		victim = before.LeaderPID
		kill(t, victim, syscall.SIGKILL)
		l.more(3)
		// We are the init of this namespace, so the dead are ours to bury.
		for exists(victim) {
			syscall.Wait4(victim, nil, syscall.WNOHANG, nil)
			time.Sleep(time.Millisecond)
		}
		if stranger = takePID(t, victim); stranger != nil {
			break
		}
		d.start() // a thread of somebody was faster: another victim
		before = d.whole("kv")
	}
	if stranger == nil {
		t.Skip("no pid could be had a second time")
	}
	defer stranger.Process.Kill()

	d.start()
	after := d.whole("kv")
	if after.Term != before.Term+1 || slices.Contains(after.pids(), victim) {
		t.Errorf("after %+v leads %+v, and pid %d is a stranger", before, after, victim)
	}
	kill(t, after.LeaderPID, syscall.SIGKILL)
	d.successor("kv", after)
	d.whole("kv")
	l.close()
	if state := d.end(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("standbyd ended with %v", state)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger was harmed: %v", err)
	}
}

// takePID starts a process that has this pid; nil if the pid is taken.
func takePID(t *testing.T, pid int) *exec.Cmd {
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
			return cmd
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	return nil
}
