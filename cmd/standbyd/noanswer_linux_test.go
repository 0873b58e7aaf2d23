//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestStoppedDaemonIsNamed: whoever waits in vain for its answer is told which
// process it is, and what to type.
func TestStoppedDaemonIsNamed(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, file := writeConfig(t, "")
	daemon := exec.Command(self, "run", "-c", file)
	daemon.Env = append(os.Environ(), "STANDBYD_TEST_MAIN=1")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		daemon.Process.Signal(syscall.SIGCONT)
		daemon.Process.Signal(syscall.SIGTERM)
		daemon.Wait()
	}()
	if code, _, stderr := call("wait", "-c", file, "kv"); code != exitDone {
		t.Fatalf("wait: exit %d, %s", code, stderr)
	}
	daemon.Process.Signal(syscall.SIGSTOP)
	var ws syscall.WaitStatus // told once all of its threads stand still
	if _, err := syscall.Wait4(daemon.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("wait until the daemon is stopped: %v, %v", ws, err)
	}
	code, _, stderr := call("status", "-c", file)
	if want := fmt.Sprintf("pid %d is stopped (SIGSTOP?): kill -CONT %[1]d\n", daemon.Process.Pid); code != exitTimedOut || !strings.HasSuffix(stderr, want) {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
