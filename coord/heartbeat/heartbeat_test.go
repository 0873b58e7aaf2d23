package heartbeat

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// TestMain lets the test binary play a member that joins and stays.
func TestMain(m *testing.M) {
	if path := os.Getenv("HEARTBEAT_TEST_JOIN"); path != "" {
		seg, err := shm.Open(path)
		if err != nil {
			panic(err)
		}
		self, _ := proc.Self()
		s, err := NewTable(seg).Join(self, JoinOptions{Index: 7})
		if err != nil {
			panic(err)
		}
		if os.Getenv("HEARTBEAT_TEST_WORK") != "" {
			for unit := range uint(64) {
				s.Mark(unit)
				if unit%2 == 1 {
					s.Clear(unit)
				}
			}
			s.Mark(64)
		}
		os.Stdout.WriteString("joined\n")
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

func newTable(t *testing.T, seats int) *Table {
	t.Helper()
	p := shm.DefaultParams()
	p.Seats, p.Cell = seats, 0
	seg, err := shm.Create(filepath.Join(t.TempDir(), "seg"), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seg.Close() })
	return NewTable(seg)
}

func self(t *testing.T) proc.Identity {
	t.Helper()
	id, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func joinProcess(t *testing.T, tb *Table) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "HEARTBEAT_TEST_JOIN="+tb.seg.Path())
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if n, _ := out.Read(make([]byte, 7)); n == 0 {
		t.Fatal("the other process did not join")
	}
	return c
}

func TestAMemberIsSeenAsItJoined(t *testing.T) {
	tb := newTable(t, 4)
	s, err := tb.Join(self(t), JoinOptions{Index: 2, Candidate: Candidate{Priority: -5, NoFailover: true, Lag: 9}})
	if err != nil {
		t.Fatal(err)
	}
	s.SetReady(true)
	s.Pulse()
	s.Mark(3)
	s.Mark(63)
	s.Mark(64)
	s.Clear(3)
	ms := tb.Members()
	if len(ms) != 1 {
		t.Fatalf("%+v", ms)
	}
	m := ms[0]
	if m.Identity != self(t) || m.Index != 2 || !m.Ready || m.Idle || m.Candidate != (Candidate{-5, true, 9}) || m.Progress != 1 || m.InFlight != 1<<63 || m.Seat != s.Number() {
		t.Fatalf("%+v", m)
	}
	if got, ok := tb.Of(uint32(os.Getpid())); !ok || got.Seat != m.Seat {
		t.Fatalf("by pid: %+v %v", got, ok)
	}
	s.Leave()
	if len(tb.Members()) != 0 || s.Held() {
		t.Fatal("still there after leaving")
	}
}

func TestTheSupervisorsSeatIsItsAlone(t *testing.T) {
	tb := newTable(t, 3)
	if _, err := tb.Join(self(t), JoinOptions{Supervisor: true, Index: -1}); err != nil {
		t.Fatal(err)
	}
	if m, ok := tb.Supervisor(); !ok || m.Index != -1 {
		t.Fatalf("%+v %v", m, ok)
	}
	if _, err := tb.Join(self(t), JoinOptions{Supervisor: true}); !errors.Is(err, ErrSupervised) {
		t.Fatalf("a second supervisor: %v", err)
	}
	for range 2 {
		if s, err := tb.Join(self(t), JoinOptions{}); err != nil || s.Number() == SupervisorSeat {
			t.Fatalf("%v", err)
		}
	}
	if _, err := tb.Join(self(t), JoinOptions{}); !errors.Is(err, ErrFull) {
		t.Fatalf("join of a full table: %v", err)
	}
	if _, err := tb.Join(proc.Identity{PID: shm.MaxPID + 1}, JoinOptions{}); !errors.Is(err, ErrInvalidPID) {
		t.Fatalf("pid beyond 22 bits: %v", err)
	}
}

func TestASeatIsReusedOnlyAfterProofAndNeverWhileNamed(t *testing.T) {
	tb := newTable(t, 2) // the supervisor's and one more
	c := joinProcess(t, tb)
	pid := uint32(c.Process.Pid)
	if _, err := tb.Join(self(t), JoinOptions{}); !errors.Is(err, ErrFull) {
		t.Fatalf("a living member's seat was given away: %v", err)
	}
	c.Process.Kill()
	c.Wait()
	for name, word := range map[string]interface {
		Store(uint64)
	}{"owner": tb.seg.Owner, "active": tb.seg.Active} {
		word.Store(shm.PackOwner(pid, 1))
		if _, err := tb.Join(self(t), JoinOptions{}); !errors.Is(err, ErrFull) {
			t.Fatalf("seat given away while the %s word names its pid: %v", name, err)
		}
		word.Store(shm.PackOwner(0, 1))
	}
	s, err := tb.Join(self(t), JoinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Member(); m.Incarnation != 2 || m.Identity.PID != os.Getpid() {
		t.Fatalf("%+v", m)
	}
}

func TestANamesakeIsBuried(t *testing.T) {
	tb := newTable(t, 4)
	old := self(t)
	old.Start--
	s, err := tb.Join(old, JoinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pid := uint32(old.PID)
	tb.seg.Owner.Store(shm.PackOwner(pid, 5))
	tb.seg.Active.Store(shm.PackOwner(pid, 5))
	n, err := tb.Join(self(t), JoinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if o, a := tb.seg.Owner.Load(), tb.seg.Active.Load(); o != shm.PackOwner(0, 5) || a != shm.PackOwner(0, 5) {
		t.Fatalf("owner %#x, active %#x still name the earlier process", o, a)
	}
	if s.Held() || !n.Held() || len(tb.Members()) != 1 {
		t.Fatal("the earlier process keeps its seat")
	}
}

func TestAWakeEndsAWaitWhereverItComes(t *testing.T) {
	tb := newTable(t, 2)
	s, err := tb.Join(self(t), JoinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		var wg sync.WaitGroup
		count := s.Event()
		wg.Go(func() { tb.Wake(s.Number()) })
		done := make(chan error, 1)
		go func() { done <- s.WaitEvent(count, 0) }()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(60 * time.Second):
			t.Fatal("a wake was lost")
		}
		wg.Wait()
	}
}

func TestWatchdogReportsEachLateMemberOnce(t *testing.T) {
	tb := newTable(t, 4)
	s, err := tb.Join(self(t), JoinOptions{Index: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.Mark(5)
	w := NewWatchdog(tb)
	tb.seg.Epoch.Add(3)
	if late := w.Scan(3); len(late) != 0 {
		t.Fatalf("at exactly grace: %+v", late)
	}
	tb.seg.Epoch.Add(1)
	late := w.Scan(3)
	if len(late) != 1 || late[0].Behind != 4 || late[0].InFlight != 1<<5 {
		t.Fatalf("%+v", late)
	}
	if late := w.Scan(3); len(late) != 0 {
		t.Fatalf("twice: %+v", late)
	}
	s.Beat(tb.seg.Epoch.Load())
	w.Scan(3)
	tb.seg.Epoch.Add(4)
	if late := w.Scan(3); len(late) != 1 {
		t.Fatalf("late again: %+v", late)
	}
}

// In the largest table every seat is as good as the first, and one more is
// refused.
func TestLargestTable(t *testing.T) {
	tb := newTable(t, shm.MaxSeats)
	var last *Seat
	for i := range shm.MaxSeats - 1 {
		s, err := tb.Join(self(t), JoinOptions{Index: i})
		if err != nil {
			t.Fatalf("member %d: %v", i, err)
		}
		last = s
	}
	if _, err := tb.Join(self(t), JoinOptions{}); !errors.Is(err, ErrFull) {
		t.Fatalf("one member too many: %v", err)
	}
	if n := len(tb.Members()); n != shm.MaxSeats-1 || last.Number() != shm.MaxSeats-1 {
		t.Fatalf("%d members, the last one in seat %d", n, last.Number())
	}
	w := NewWatchdog(tb)
	tb.seg.Epoch.Add(4)
	for _, m := range tb.Members() {
		if m.Seat != last.Number() {
			tb.seg.Seats[m.Seat].Beat.Store(tb.seg.Epoch.Load())
		}
	}
	if late := w.Scan(3); len(late) != 1 || late[0].Seat != last.Number() {
		t.Fatalf("late: %+v", late)
	}
	// The end of a thread fires the words of its own row alone.
	held, dropped := make(chan error), make(chan struct{})
	var hold func()
	hold = func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		_, err := tb.seg.HoldRobust(last.Number())
		if err == nil {
			tid := tb.seg.Seats[last.Number()].Robust.Load()
			if tid == uint64(os.Getpid()) {
				go hold() // the main thread would not end; another one registers after it
				<-dropped
				return
			}
			for _, waiter := range []int{1, shm.MaxSeats - 2} {
				tb.seg.RobustWord(last.Number(), waiter).Store(uint32(tid))
			}
			tb.seg.RobustWord(1, last.Number()).Store(uint32(tid))
		}
		held <- err
		<-dropped
	}
	go hold()
	if err := <-held; errors.Is(err, shm.ErrNotSupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	close(dropped)
	deadline := time.Now().Add(30 * time.Second)
	for _, waiter := range []int{1, shm.MaxSeats - 2} {
		for tb.seg.RobustWord(last.Number(), waiter).Load()&shm.RobustDied == 0 {
			if time.Now().After(deadline) {
				t.Fatalf("the word of seat %d was not fired", waiter)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if tb.seg.RobustWord(1, last.Number()).Load()&shm.RobustDied != 0 {
		t.Error("another row's word was fired")
	}
}

// A member that is killed in the middle of its work is reported late, once,
// with what it had in flight; its seat's next holder has nothing in flight.
func TestWorkOfAKilledMemberIsReported(t *testing.T) {
	t.Setenv("HEARTBEAT_TEST_WORK", "1")
	tb := newTable(t, 3)
	c := joinProcess(t, tb)
	c.Process.Kill()
	c.Wait()
	w := NewWatchdog(tb)
	tb.seg.Epoch.Add(4)
	const even = 0x5555555555555555
	late := w.Scan(3)
	if len(late) != 1 || late[0].Identity.PID != c.Process.Pid || late[0].InFlight != even {
		t.Fatalf("%+v", late)
	}
	if late := w.Scan(3); len(late) != 0 {
		t.Fatalf("twice: %+v", late)
	}
	// Twice, so that the dead one's seat is used again.
	for range 2 {
		s, err := tb.Join(self(t), JoinOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if m := s.Member(); m.InFlight != 0 {
			t.Fatalf("seat %d is handed on with %#x in flight", m.Seat, m.InFlight)
		}
	}
}
