//go:build linux

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/standbyd/standbyd/test/eventually"
)

func TestTableOfProcesses(t *testing.T) {
	child := exec.Command("/bin/sleep", "1000")
	child.Env = []string{"A=1", "MARK=a=b", "EMPTY="}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	pid := child.Process.Pid
	pids, err := PIDs()
	if err != nil || !slices.Contains(pids, pid) || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("%d and %d are not among %v, %v", pid, os.Getpid(), pids, err)
	}
	if up, err := Parent(pid); err != nil || up != os.Getpid() {
		t.Errorf("the parent of %d is %d, %v", pid, up, err)
	}
	// Start returns in the middle of the exec, when there is none yet.
	eventually.Shows(t, fmt.Sprintf("it has what it was started with: %q", child.Env), func() (bool, string) {
		got := Environ(pid)
		return slices.Equal(got, child.Env), fmt.Sprintf("%q", got)
	})
	child.Process.Kill()
	child.Wait()
	if got := Environ(pid); got != nil {
		t.Errorf("a dead one has %q", got)
	}
	if up, err := Parent(pid); err == nil {
		t.Errorf("the parent of a dead one is %d", up)
	}
}
