//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/programs"
)

// openPTY returns a terminal's two ends.
func openPTY(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}

// TestCtrlCReachesTheDaemonAlone: as below a make, which would be interrupted
// too and end with a failure.
func TestCtrlCReachesTheDaemonAlone(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, file := writeConfig(t, "")
	master, terminal := openPTY(t)
	parent := exec.Command("/bin/sh", "-c", `"$0" run -c "$1" --take-terminal; echo "parent saw $?"`, self, file)
	parent.Env = append(os.Environ(), "STANDBYD_TEST_MAIN=1", "TERM=xterm")
	parent.Stdin, parent.Stdout, parent.Stderr = terminal, terminal, terminal
	parent.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	var seen programs.Output
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			seen.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		parent.Process.Kill()
		if t.Failed() {
			t.Logf("the terminal showed:\n%s", seen.String())
		}
	})
	eventually.Holds(t, "somebody leads", func() bool { return strings.Contains(seen.String(), " leads, token") })
	master.Write([]byte{'Z' - '@'}) // nobody could continue it: ignored
	master.Write([]byte{'C' - '@'})
	eventually.Holds(t, "the parent goes on", func() bool { return strings.Contains(seen.String(), "parent saw ") })
	if !strings.Contains(seen.String(), "parent saw 0") || !strings.Contains(seen.String(), "SIGINT: stopping in order") {
		t.Error("the daemon did not end with 0 by Ctrl-C")
	}
	if err := parent.Wait(); err != nil {
		t.Errorf("the parent: %v", err)
	}
}

// TestEndOfTheTerminalStopsInOrder: as when the window is closed, or the
// terminal multiplexer's session killed.
func TestEndOfTheTerminalStopsInOrder(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here, as under nohup: the daemon would go on, as it should")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, file := writeConfig(t, "")
	master, terminal := openPTY(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d := exec.Command(self, "run", "-c", file)
	d.Env = append(os.Environ(), "STANDBYD_TEST_MAIN=1")
	d.Stdin, d.Stdout, d.Stderr = terminal, terminal, log
	d.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Process.Kill() })
	terminal.Close()
	said := func(what string) func() bool {
		return func() bool {
			raw, _ := os.ReadFile(log.Name())
			return strings.Contains(string(raw), what)
		}
	}
	eventually.Holds(t, "somebody leads", said(" leads, token"))
	master.Close()
	if err := d.Wait(); err != nil || !said("SIGHUP: stopping in order")() {
		raw, _ := os.ReadFile(log.Name())
		t.Errorf("after the end of the terminal: %v\n%s", err, raw)
	}
}
