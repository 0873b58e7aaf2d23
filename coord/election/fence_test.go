package election

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// TestMain lets the test binary play a leader that hangs.
func TestMain(m *testing.M) {
	if path := os.Getenv("ELECTION_TEST_LEAD"); path != "" {
		leadAndHang(path)
	}
	if os.Getenv("ELECTION_TEST_ESCAPE") != "" {
		os.Stdout.WriteString("away\n")
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

func leadAndHang(path string) {
	e, err := Open(path)
	if err != nil {
		panic(err)
	}
	self, err := proc.Self()
	if err != nil {
		panic(err)
	}
	seat, err := heartbeat.NewTable(e.Segment()).Join(self, heartbeat.JoinOptions{})
	if err != nil {
		panic(err)
	}
	g, err := e.Claim(Attempt{PID: uint32(self.PID), Seat: seat.Number(), Grace: 3})
	if err != nil {
		panic(err)
	}
	if err := e.Promote(context.Background(), Promotion{PID: uint32(self.PID), Term: g.Term}); err != nil {
		panic(err)
	}
	if os.Getenv("ELECTION_TEST_FORK") != "" {
		escape(path)
	}
	os.Stdout.WriteString("leads\n")
	time.Sleep(time.Hour)
}

// escape leaves a process behind in another session, where sessions exist.
var escape = func(string) {}

// startLeader starts a process that leads in term 1 and hangs.
func startLeader(t *testing.T, e *Election, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(append(os.Environ(), "ELECTION_TEST_LEAD="+e.Segment().Path()), env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if n, _ := out.Read(make([]byte, 6)); n == 0 {
		t.Fatal("the other process did not come to lead")
	}
	return c
}

// fenceRealProcess: a claimant that took a hung leader's lease by staleness
// leads only after that process is dead.
func fenceRealProcess(t *testing.T) {
	p := shm.DefaultParams()
	p.Cell, p.Fence = 0, shm.FenceProcess
	e := newElection(t, WithParams(p))
	c := startLeader(t, e)
	other := uint32(c.Process.Pid)
	if pid, term := e.Active(); pid != other || term != 1 {
		t.Fatalf("active word names (%d,%d)", pid, term)
	}
	if e.Dead(other) {
		t.Fatal("a living process is proven dead")
	}
	for range 5 {
		e.TickEpoch()
	}
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	me := uint32(self.PID)
	g, err := e.Claim(Attempt{PID: me, Seat: -1, Grace: 3})
	if err != nil || g.Term != 2 || g.Previous != other {
		t.Fatalf("%+v %v", g, err)
	}
	if err := e.Promote(t.Context(), Promotion{PID: me, Term: 2}); err != nil {
		t.Fatal(err)
	}
	if !e.Dead(other) {
		t.Fatal("promoted before the predecessor was dead")
	}
	if err := e.Check(me, 2); err != nil {
		t.Fatal(err)
	}
}

// TestNobodyOwnsNothing: pid 0 is nobody, in a vacant lease too, and a pid of
// more than 22 bits is not the one that its low bits name.
func TestNobodyOwnsNothing(t *testing.T) {
	e := newElection(t)
	claim(t, e, 100, 1)
	if err := e.Promote(t.Context(), Promotion{PID: 100, Term: 1}); err != nil {
		t.Fatal(err)
	}
	if err := e.Retire(100, 1); err != nil {
		t.Fatal(err)
	}
	if err := e.StepDown(100); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []uint32{0, shm.MaxPID + 1} {
		if err := e.Check(pid, 1); !errors.Is(err, ErrFenced) {
			t.Errorf("check by %d: %v", pid, err)
		}
		if err := e.Beat(pid, 1); !errors.Is(err, ErrLost) {
			t.Errorf("beat by %d: %v", pid, err)
		}
		if err := e.Release(pid, 1); !errors.Is(err, ErrNotOwner) {
			t.Errorf("release by %d: %v", pid, err)
		}
		if err := e.Retire(pid, 1); !errors.Is(err, ErrFenced) {
			t.Errorf("retire by %d: %v", pid, err)
		}
		if err := e.Promote(t.Context(), Promotion{PID: pid, Term: 2}); !errors.Is(err, ErrInvalidPID) {
			t.Errorf("promote %d: %v", pid, err)
		}
	}
}

// TestPromoteAgainAfterTheLoss: that the active word still names an owner that
// has lost the lease is no reason to lead.
func TestPromoteAgainAfterTheLoss(t *testing.T) {
	e := newElection(t)
	claim(t, e, 200, 1)
	p := Promotion{PID: 200, Term: 1}
	if err := errors.Join(e.Promote(t.Context(), p), e.Promote(t.Context(), p)); err != nil {
		t.Fatal(err)
	}
	claim(t, e, 100, 2)
	if err := e.Promote(t.Context(), p); !errors.Is(err, ErrLost) {
		t.Fatalf("promoted after the loss: %v", err)
	}
}
