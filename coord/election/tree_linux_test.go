//go:build linux

package election

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

func init() { escape = escapeSession }

// escapeGroup starts a process that leaves the group and has no marks.
func escapeGroup(path string) {
	c := exec.Command("/bin/sleep", "1000")
	c.Env, c.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		panic(err)
	}
	os.WriteFile(path+".escaped", []byte(strconv.Itoa(c.Process.Pid)), 0o600)
}

// escapeSession starts a process that leaves the group, with the marks that a launch
// stage and a supervisor would have set.
func escapeSession(path string) {
	if dir := os.Getenv("ELECTION_TEST_CGROUP"); dir != "" {
		// As born there, and recorded before it led.
		if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			panic(err)
		}
		escapeGroup(path)
		return
	}
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
	takeOver(t, e, 2)
	if v := proc.Judge(escaped); v != proc.Gone {
		t.Fatalf("leads while a process of the predecessor is %v", v)
	}
}

// takeOver leads in term after the dead leader's.
func takeOver(t *testing.T, e *Election, term uint64) {
	t.Helper()
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	me := uint32(self.PID)
	if _, err := e.Claim(Attempt{PID: me, Seat: -1, Grace: 3, Dead: e.Dead}); err != nil {
		t.Fatal(err)
	}
	if err := e.Promote(t.Context(), Promotion{PID: me, Term: term}); err != nil {
		t.Fatal(err)
	}
}

// TestTreeFenceEmptiesTheCgroup: a process that left the group and dropped
// every mark, but is in the recorded cgroup, is gone before the next one leads;
// where cgroup.kill cannot be used, too, and with proof "exiting". Without a
// record it is not found: that is what cgroups are for.
func TestTreeFenceEmptiesTheCgroup(t *testing.T) {
	for _, c := range []struct {
		name      string
		proof     uint8
		no, found bool // no record is made; the process is found
	}{
		{"gone", shm.ProofGone, false, true},
		{"exiting", shm.ProofExiting, false, true},
		{"without a record", shm.ProofGone, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			group := makeGroup(t)
			p := shm.DefaultParams()
			p.Cell, p.Fence, p.Proof = 0, shm.FenceTree, c.proof
			e := newElection(t, WithParams(p))
			leader := startLeader(t, e, "ELECTION_TEST_FORK=1", "ELECTION_TEST_CGROUP="+group.Path())
			id, err := proc.Of(leader.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			record := proc.CgroupRecord(filepath.Dir(e.Segment().Path()), id)
			if !c.no {
				if err := os.MkdirAll(filepath.Dir(record), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(group.Path(), record); err != nil {
					t.Fatal(err)
				}
			}
			b, err := os.ReadFile(e.Segment().Path() + ".escaped")
			if err != nil {
				t.Fatal(err)
			}
			pid, _ := strconv.Atoi(string(b))
			escaped, err := proc.Of(pid)
			if err != nil {
				t.Fatal(err)
			}
			leader.Process.Kill()
			leader.Wait()
			if proc.Judge(escaped) != proc.Alive {
				t.Fatal("it died with the leader, so this shows nothing")
			}
			takeOver(t, e, 2)
			if v := proc.Judge(escaped); (v != proc.Alive) != c.found {
				t.Fatalf("the next one leads, and the process of the predecessor is %v", v)
			}
		})
	}
}

// makeGroup makes a cgroup for the test below this process's own mount.
func makeGroup(t *testing.T) *proc.Cgroup {
	t.Helper()
	for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := proc.OpenCgroup(top); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(top, "standbyd-test-")
		if err != nil {
			t.Skipf("no cgroups can be made here: %v", err)
		}
		group, err := proc.OpenCgroup(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
				group.End()
				if p, _ := group.Populated(); !p || time.Now().After(deadline) {
					break
				}
			}
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		return group
	}
	t.Skip("no cgroup v2 here")
	return nil
}
