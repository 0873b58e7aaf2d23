//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// process is one living process that belongs to a test.
type process struct {
	pid     int
	ppid    int
	command string
}

func (p process) String() string { return fmt.Sprintf("%d (%s)", p.pid, p.command) }

// processes finds every living process that has the test's folder in its
// command line or environment, standbyd and its command line excluded: the
// workers, the plugins and whatever they started.
func (d *daemon) processes() []process {
	var found []process
	for _, p := range allProcesses() {
		if p.pid != os.Getpid() && !strings.HasPrefix(p.command, bin+"/standbyd ") && d.owns(p) {
			found = append(found, p)
		}
	}
	return found
}

func (d *daemon) owns(p process) bool {
	if strings.Contains(p.command, d.dir) {
		return true
	}
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
	return bytes.Contains(env, []byte(d.dir))
}

// allProcesses reads the process table, zombies left out.
func allProcesses() []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var all []process
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(f) < 2 || f[0] == "Z" || f[0] == "X" {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		ppid, _ := strconv.Atoi(f[1])
		command, _ := os.ReadFile(dir + "/cmdline")
		all = append(all, process{pid, ppid, string(bytes.ReplaceAll(command, []byte{0}, []byte{' '}))})
	}
	return all
}

// gone waits until no process of the test is left.
func (d *daemon) gone() {
	d.t.Helper()
	eventually.Shows(d.t, "nothing is left running", func() (bool, string) {
		left := d.processes()
		return len(left) == 0, fmt.Sprint(left)
	})
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("asked to kill pid %d", pid)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("kill -%d %d: %v", sig, pid, err)
	}
}

// runs is false also for a zombie: all that it had is released, and only its
// status waits to be fetched.
func runs(t *testing.T, pid int) bool {
	t.Helper()
	id, err := proc.Of(pid)
	return err == nil && proc.Judge(id) != proc.Gone
}
