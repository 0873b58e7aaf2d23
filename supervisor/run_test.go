package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

func nobody(proc.Identity) bool { return false }

func TestRoleStartsAndShutsDownInOrder(t *testing.T) {
	c := newConfig(t, "good")
	h := &recorder{}
	c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: h}}
	w := start(t, c)
	r := w.until("the role is full", full)
	if r.Term != 1 || r.Token != role.MakeToken(1, 1) || r.LeaderPID == 0 {
		t.Errorf("term %d, token %s, pid %d", r.Term, r.Token, r.LeaderPID)
	}
	w.shutdown()
	want := []string{"start", "promote 1.1 " + r.Leader + " first", "demote 1.1 " + r.Leader + " stopped", "stop"}
	if got := h.list(); !slices.Equal(got, want) {
		t.Errorf("hooks were called as %q, want %q", got, want)
	}
	if got := w.leads(); len(got) != 2 {
		t.Errorf("somebody was promoted on the way down: %q", got)
	}
	w.noProcesses()
	if _, err := os.Stat(roleDir(c.RuntimeDir, "kv")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the role's folder is left: %v", err)
	}
	for _, e := range w.sup.RecentEvents() {
		if e.Type == EventWorkerExited && (e.Exit.Code == nil || *e.Exit.Code != 0) {
			t.Errorf("%s ended with %+v", e.Worker, e.Exit)
		}
	}
}

func TestKilledLeaderIsReplacedAndRecorded(t *testing.T) {
	c := newConfig(t, "good")
	h := &recorder{}
	c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: h}}
	w := start(t, c)
	before := w.until("the role is full", full)
	if err := syscall.Kill(before.LeaderPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	after := w.until("another leads and the killed one is back", func(r RoleStatus) bool {
		return full(r) && r.Term == before.Term+1 && r.LastFailover != nil
	})
	rec := after.LastFailover
	if rec.Reason != role.ReasonCrash || rec.From != before.Leader || rec.FromPID != before.LeaderPID ||
		rec.To != after.Leader || rec.ToPID != after.LeaderPID || rec.Token != after.Token {
		t.Errorf("the record is %+v", rec)
	}
	if rec.ClaimedUS == nil || rec.ActiveUS == nil || rec.HooksUS == nil || *rec.ActiveUS < *rec.ClaimedUS || *rec.HooksUS < *rec.ActiveUS {
		t.Errorf("phases: %v %v %v %v", rec.DetectedUS, rec.ClaimedUS, rec.ActiveUS, rec.HooksUS)
	}
	history, err := w.sup.History("kv")
	if err != nil || len(history) != 2 || history[1].Token != rec.Token {
		t.Errorf("history: %+v, %v", history, err)
	}
	for _, ws := range after.Workers {
		if ws.Name == before.Leader && (ws.Restarts != 1 || ws.LastExit == nil || ws.LastExit.Signal != "SIGKILL") {
			t.Errorf("the killed worker is %+v", ws)
		}
	}
}

func TestDrillKill(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: &recorder{}}}
	w := start(t, c)
	w.until("the role is full", full)
	records, err := w.sup.Drill(context.Background(), "kv", DrillOptions{Count: 3, Interval: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, rec := range records {
		if rec.Reason != role.ReasonDrill || rec.Term != uint64(i+2) {
			t.Errorf("round %d: %+v", i, rec)
		}
		for _, us := range []*float64{rec.DetectedUS, rec.ClaimedUS, rec.ActiveUS, rec.HooksUS} {
			if us == nil || *us <= 0 {
				t.Errorf("round %d: a phase was not measured: %+v", i, rec)
			}
		}
	}
}

func TestStoppedLeaderIsFencedAndReplaced(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Grace = 6
	w := start(t, c)
	before := w.until("the role is full", full)
	records, err := w.sup.Drill(context.Background(), "kv", DrillOptions{Fault: "stop"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if records[0].From != before.Leader || records[0].Reason != role.ReasonDrill {
		t.Errorf("record: %+v", records[0])
	}
	w.until("the stopped worker is back", func(r RoleStatus) bool {
		restarts := 0
		for _, ws := range r.Workers {
			restarts += ws.Restarts
		}
		return full(r) && r.Term > before.Term && restarts == 1
	})
	found := false
	for _, e := range w.sup.RecentEvents() {
		found = found || e.Type == EventWorkerExited && e.PID == before.LeaderPID && e.Exit.Signal == "SIGKILL"
	}
	if !found {
		t.Error("the stopped leader was not ended")
	}
}

// TestHungLeaderIsMeasuredFromItsLastBeat: not from the moment in which
// somebody noticed.
func TestHungLeaderIsMeasuredFromItsLastBeat(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Grace = 6
	w := start(t, c)
	before := w.until("the role is full", full)
	if err := syscall.Kill(before.LeaderPID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	after := w.until("another leads", func(r RoleStatus) bool { return led(r) && r.Term > before.Term && r.LastFailover != nil })
	rec, least := after.LastFailover, float64(c.Roles[0].Tick.Microseconds()*int64(c.Roles[0].Grace))
	if rec.Reason != role.ReasonHang || rec.DetectedUS == nil || *rec.DetectedUS < least || rec.ActiveUS == nil || *rec.ActiveUS < *rec.DetectedUS {
		b, _ := json.Marshal(rec)
		t.Errorf("%s; at least %vus", b, least)
	}
}

func TestDrillNeedsAStandby(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Workers = 1
	w := start(t, c)
	before := w.until("the role is led", led)
	if _, err := w.sup.Drill(context.Background(), "kv", DrillOptions{}, nil); !errors.Is(err, ErrNoStandby) {
		t.Errorf("got %v", err)
	}
	records, err := w.sup.Drill(context.Background(), "kv", DrillOptions{Force: true}, nil)
	if err != nil || records[0].Term != before.Term+1 {
		t.Errorf("got %+v, %v", records, err)
	}
}

func TestBudgetHoldsTheRole(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Failovers = 2
	w := start(t, c)
	for range 3 {
		r := w.until("the role is full", full)
		syscall.Kill(r.LeaderPID, syscall.SIGKILL)
		w.until("it is noticed", func(now RoleStatus) bool { return now.LeaderPID != r.LeaderPID })
	}
	held := w.until("the role is held", func(r RoleStatus) bool { return r.State == RoleHeld })
	if !strings.Contains(held.Why, "standbyd ack kv") {
		t.Errorf("why: %q", held.Why)
	}
	if err := w.sup.Ack(context.Background(), "kv"); err != nil {
		t.Fatal(err)
	}
	w.until("the role is led again", led)
	if err := w.sup.Ack(context.Background(), "kv"); !errors.Is(err, ErrNotHeld) {
		t.Errorf("a second ack: %v", err)
	}
}

func TestWorkersThatDoNotWork(t *testing.T) {
	c := newConfig(t, "good")
	dir := c.Roles[0].Dir
	missing, exits, never := testRole(t, dir, "good"), testRole(t, dir, "exit"), testRole(t, dir, "never")
	missing.Name, missing.Command, missing.Burst = "missing", []string{dir + "/nosuch"}, 3
	exits.Name, exits.Burst = "exits", 3
	never.Name, never.StartTimeout, never.Burst = "never", 300_000_000, 2
	c.Roles = append(c.Roles, missing, exits, never)
	w := start(t, c)
	for i, want := range []string{"no such file", "exit status 3", "not ready within 300ms"} {
		r := w.untilRole(i+1, "all workers have failed", func(r RoleStatus) bool {
			return !slices.ContainsFunc(r.Workers, func(ws WorkerStatus) bool { return ws.State != WorkerFailed })
		})
		if !strings.Contains(r.Workers[0].Why, want) || !strings.Contains(r.Why, want) {
			t.Errorf("%s: %q; %q", r.Name, r.Why, r.Workers[0].Why)
		}
	}
	w.until("the good role is full", full)
	sources, err := w.sup.LogSources("exits/0")
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(sources[0].File); !strings.Contains(string(b), "last words") {
		t.Errorf("the log has %q", b)
	}
}

func TestShutdownOfStubbornWorkers(t *testing.T) {
	c := newConfig(t, "sticky")
	c.Roles[0].StopTimeout, c.Roles[0].DrainTimeout = 300_000_000, 300_000_000
	w := start(t, c)
	w.until("the role is led", led)
	w.shutdown()
	w.noProcesses()
}

func TestKillEndsAllAtOnce(t *testing.T) {
	c := newConfig(t, "sticky")
	h := &recorder{}
	c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: h}}
	w := start(t, c)
	w.until("the role is led", led)
	w.sup.Kill()
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
	w.ended <- nil
	w.noProcesses()
	if calls := h.list(); calls[len(calls)-1] != "stop" {
		t.Errorf("hooks: %q", calls)
	}
}

func TestSecondSupervisorIsRefused(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	w.until("the role is led", led)
	other, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var already *AlreadyRunningError
	if err := other.Run(context.Background()); !errors.As(err, &already) || already.PID != os.Getpid() || !errors.Is(err, ErrAlreadyRunning) {
		t.Errorf("got %v", err)
	}
	c.StateDir += "2"
	other, _ = New(c)
	if err := other.Run(context.Background()); !errors.Is(err, ErrAlreadyRunning) {
		t.Errorf("with another state folder: %v", err)
	}
}

func TestSignalAndResolve(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	r := w.until("the role is full", full)
	name, worker, pid, err := w.sup.Resolve("kv/leader")
	if err != nil || name != "kv" || worker != r.Leader || pid != r.LeaderPID {
		t.Errorf("%s %s %d %v", name, worker, pid, err)
	}
	for target, want := range map[string]error{"no/0": ErrNoRole, "kv/7": ErrNoWorker, "kv-x": ErrNoWorker, "kv": ErrNoWorker, "no": ErrNoRole} {
		if _, _, _, err := w.sup.Resolve(target); !errors.Is(err, want) {
			t.Errorf("%s: %v", target, err)
		}
	}
	if _, pid, err := w.sup.Signal(context.Background(), "kv/leader", syscall.SIGKILL); err != nil || pid != r.LeaderPID {
		t.Errorf("signal: %d, %v", pid, err)
	}
	after := w.until("another leads", func(now RoleStatus) bool { return led(now) && now.Term > r.Term && now.LastFailover != nil })
	if after.LastFailover.Reason != role.ReasonCrash {
		t.Errorf("reason %s", after.LastFailover.Reason)
	}
}

// TestProgramThatIsNone: the error of exec reaches the status, whatever step
// of the launch it comes from.
func TestProgramThatIsNone(t *testing.T) {
	c := newConfig(t, "good")
	path := c.Roles[0].Dir + "/text"
	if err := os.WriteFile(path, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Roles[0].Command, c.Roles[0].Burst = []string{path}, 2
	w := start(t, c)
	r := w.until("the workers have failed", func(r RoleStatus) bool { return r.Workers[0].State == WorkerFailed })
	if !strings.Contains(r.Workers[0].Why, "exec format error") {
		t.Errorf("why: %q", r.Workers[0].Why)
	}
}

// TestWorkersOfAnotherUser: the role's folder, segment, socket and FIFO are the
// user's own, and the supervisor still serves them.
func TestWorkersOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	c := newConfig(t, "good")
	dir := c.Roles[0].Dir
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(c.Roles[0].Command[0])
	if err != nil {
		t.Fatal(err)
	}
	c.Roles[0].Command = []string{dir + "/worker"}
	if err := os.WriteFile(dir+"/worker", b, 0o755); err != nil {
		t.Fatal(err)
	}
	c.Roles[0].User = "65534"
	w := start(t, c)
	before := w.until("the role is full", full)
	info, err := os.Stat("/proc/" + strconv.Itoa(before.LeaderPID))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 65534 {
		t.Errorf("the leader is not the user's: %v", err)
	}
	syscall.Kill(before.LeaderPID, syscall.SIGKILL)
	w.until("another leads", func(r RoleStatus) bool { return full(r) && r.Term == 2 })
	w.shutdown()
	w.noProcesses()
}

// TestLostStateFolderKeepsTokensRising: the counter of generations is gone and
// the runtime folder knows better.
func TestLostStateFolderKeepsTokensRising(t *testing.T) {
	c := newConfig(t, "good")
	for range 3 {
		cmd := apart(t, c)
		list := readyApart(t, c, 1)
		cmd.kill()
		for _, w := range list.Workers {
			syscall.Kill(w.Identity.PID, syscall.SIGKILL)
			eventually.Holds(t, "it is gone", func() bool { return proc.Judge(w.Identity) == proc.Gone })
		}
	}
	if err := os.RemoveAll(c.StateDir); err != nil {
		t.Fatal(err)
	}
	w := start(t, c)
	if r := w.until("the role is led", led); r.Token.Generation() != 4 {
		t.Errorf("token %s", r.Token)
	}
}
