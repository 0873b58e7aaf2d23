//go:build linux

package election

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

func init() { escape = escapeSession }

// escapeSession starts a process that leaves the group, with the marks that a launch
// stage and a supervisor would have set.
func escapeSession(path string) {
	c := exec.Command(os.Args[0])
	c.Env = []string{"ELECTION_TEST_ESCAPE=1", "STANDBYD_PID=" + strconv.Itoa(os.Getpid()), "STANDBYD_SEGMENT=" + path}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		panic(err)
	}
	out.Read(make([]byte, 5))
	os.WriteFile(path+".escaped", []byte(strconv.Itoa(c.Process.Pid)), 0o600)
}

// TestTreeFenceWaitsForWhoEscaped: under fence tree a process that a dead
// leader has left in another session is gone before the next one leads.
func TestTreeFenceWaitsForWhoEscaped(t *testing.T) {
	p := shm.DefaultParams()
	p.Cell, p.Fence = 0, shm.FenceTree
	e := newElection(t, WithParams(p))
	c := startLeader(t, e, "ELECTION_TEST_FORK=1")
	b, err := os.ReadFile(e.Segment().Path() + ".escaped")
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(b))
	escaped, err := proc.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	c.Process.Kill()
	c.Wait()
	if proc.Judge(escaped) != proc.Alive {
		t.Fatal("it died with the leader, so this shows nothing")
	}
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	me := uint32(self.PID)
	if _, err := e.Claim(Attempt{PID: me, Seat: -1, Grace: 3, Dead: e.Dead}); err != nil {
		t.Fatal(err)
	}
	if err := e.Promote(t.Context(), Promotion{PID: me, Term: 2}); err != nil {
		t.Fatal(err)
	}
	if v := proc.Judge(escaped); v != proc.Gone {
		t.Fatalf("leads while a process of the predecessor is %v", v)
	}
}
