package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// readyApart waits until the role of a supervisor apart is led and its workers
// are listed, and returns the list.
func readyApart(t *testing.T, c Config, leads int) workersFile {
	t.Helper()
	return readyRole(t, c, 0, leads)
}

func readyRole(t *testing.T, c Config, role, leads int) workersFile {
	t.Helper()
	var list workersFile
	eventually.Holds(t, "the role is full", func() bool {
		list, _ = readWorkers(filepath.Join(roleDir(c.RuntimeDir, c.Roles[role].Name), "workers.json"))
		b, _ := os.ReadFile(c.Roles[role].Env["TEST_LEADS"])
		return len(list.Workers) == c.Roles[role].Workers && readySeats(list) == len(list.Workers) && strings.Count(string(b), "lead ") >= leads
	})
	return list
}

// readySeats counts the listed workers that are ready.
func readySeats(list workersFile) (n int) {
	seg, err := shm.OpenReadOnly(list.Segment)
	if err != nil {
		return 0
	}
	defer seg.Close()
	for _, m := range heartbeat.NewTable(seg).Members() {
		if m.Ready && proc.Judge(m.Identity) != proc.Gone && slices.ContainsFunc(list.Workers, func(w listedWorker) bool { return w.Identity == m.Identity }) {
			n++
		}
	}
	return n
}

func pidsOf(list workersFile) (pids []int) {
	for _, w := range list.Workers {
		pids = append(pids, w.Identity.PID)
	}
	return pids
}

func pidsIn(r RoleStatus) (pids []int) {
	for _, w := range r.Workers {
		pids = append(pids, w.PID)
	}
	return pids
}

func TestAdoption(t *testing.T) {
	c := newConfig(t, "serve")
	c.Roles[0].Listen = []ListenConfig{{Name: "http", Address: "127.0.0.1:0"}}
	first := apart(t, c)
	list := readyApart(t, c, 1)
	first.kill()
	deaths := deathLog{filepath.Join(deathsDir(c.StateDir), "kv-1.jsonl"), -1}
	seven := 7
	if err := deaths.add(Death{At: time.Now(), PID: 9, Code: &seven, Cause: "exit status 7"}); err != nil {
		t.Fatal(err)
	}
	h := &recorder{}
	c.Roles[0].Hooks = []NamedHooks{{Name: "rec", Hooks: h}}
	w := start(t, c)
	r := w.until("the role is adopted", full)
	if !slices.Equal(pidsIn(r), pidsOf(list)) || r.Term != 1 || r.Token != role.MakeToken(1, 1) {
		t.Errorf("adopted %v in term %d, token %s; had %v in term 1", pidsIn(r), r.Term, r.Token, pidsOf(list))
	}
	if last := r.Workers[1].LastExit; last == nil || last.PID != 9 || last.Code == nil || *last.Code != 7 || last.Cause != "" {
		t.Errorf("the last exit of kv-1 is not that of its history: %+v", last)
	}
	r = w.until("the listener is handed back", func(r RoleStatus) bool { return !strings.HasSuffix(r.Listen[0].Address, ":0") })
	eventually.Holds(t, "the hooks are told", func() bool { return len(h.list()) >= 2 })
	if got := h.list(); !slices.Equal(got, []string{"start", "promote 1.1 " + r.Leader + " adopted"}) {
		t.Errorf("hooks: %q", got)
	}
	if answer, err := dial(t, r.Listen[0].Address); err != nil || answer != fmt.Sprintf("%d 1.1", r.LeaderPID) {
		t.Errorf("the leader answers %q, %v", answer, err)
	}
	if len(w.leads()) != 1 {
		t.Errorf("leads: %q", w.leads())
	}
	// The new supervisor restarts what dies, with the same socket.
	syscall.Kill(r.LeaderPID, syscall.SIGKILL)
	after := w.until("an adopted worker is replaced", func(now RoleStatus) bool { return full(now) && now.Term == 2 && now.LastFailover != nil })
	if after.LastFailover.From != r.Leader || after.LastFailover.Reason != role.ReasonCrash {
		t.Errorf("record: %+v", after.LastFailover)
	}
	if answer, err := dial(t, r.Listen[0].Address); err != nil || answer != fmt.Sprintf("%d 1.2", after.LeaderPID) {
		t.Errorf("the next leader answers %q, %v", answer, err)
	}
	w.shutdown()
	w.noProcesses()
}

// TestFailoverWhileNobodyWatched: leaders die and follow without a supervisor;
// the next one writes the history from the ring and restarts the dead.
func TestFailoverWhileNobodyWatched(t *testing.T) {
	c := newConfig(t, "good")
	first := apart(t, c)
	list := readyApart(t, c, 1)
	first.kill()
	b, _ := os.ReadFile(c.Roles[0].Env["TEST_LEADS"])
	var token string
	var leader int
	fmt.Sscanf(string(b), "lead %s %d", &token, &leader)
	syscall.Kill(leader, syscall.SIGKILL)
	eventually.Holds(t, "a standby leads without a supervisor", func() bool {
		b, _ := os.ReadFile(c.Roles[0].Env["TEST_LEADS"])
		return strings.Contains(string(b), "lead 1.2 ")
	})
	w := start(t, c)
	r := w.until("the role is adopted and full", func(r RoleStatus) bool { return full(r) && r.LastFailover != nil })
	rec := r.LastFailover
	at := slices.Index(pidsOf(list), leader)
	if r.Term != 2 || rec.Term != 2 || rec.Reason != role.ReasonCrash || rec.FromPID != leader || rec.From != list.Workers[at].Name ||
		rec.DetectedUS != nil || rec.HooksUS != nil || rec.ActiveUS == nil {
		t.Errorf("term %d, record %+v", r.Term, rec)
	}
	if ws := r.Workers[at]; ws.Restarts != 1 {
		t.Errorf("the worker that died between two supervisors: %+v", ws)
	}
	same := 0
	for _, pid := range pidsIn(r) {
		if slices.Contains(pidsOf(list), pid) {
			same++
		}
	}
	if same != 2 {
		t.Errorf("%d workers are the old ones", same)
	}
}

func TestTenSupervisorsKilledInARow(t *testing.T) {
	c := newConfig(t, "serve")
	c.Roles[0].Listen = []ListenConfig{{Name: "http", Address: "127.0.0.1:0"}}
	var list workersFile
	for round := range 10 {
		cmd := apart(t, c)
		list = readyApart(t, c, 1)
		if round%2 == 0 {
			// Also in the middle of an adoption.
			time.Sleep(time.Duration(round) * 20 * time.Millisecond)
		}
		cmd.kill()
	}
	w := start(t, c)
	r := w.until("the role is full", full)
	if !slices.Equal(pidsIn(r), pidsOf(list)) || r.Term != 1 || len(w.leads()) != 1 {
		t.Errorf("adopted %v in term %d; had %v; leads %q", pidsIn(r), r.Term, pidsOf(list), w.leads())
	}
	w.until("the listener is handed back", func(r RoleStatus) bool { return !strings.HasSuffix(r.Listen[0].Address, ":0") })
}

// TestStalePIDIsNotAdopted: the list names a process that is not the one that
// was listed.
func TestStalePIDIsNotAdopted(t *testing.T) {
	c := newConfig(t, "good")
	first := apart(t, c)
	list := readyApart(t, c, 1)
	first.kill()
	innocent := exec.Command("/bin/sleep", "1000")
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { innocent.Process.Kill(); innocent.Wait() }()
	path := filepath.Join(roleDir(c.RuntimeDir, "kv"), "workers.json")
	victim := list.Workers[2].Identity
	list.Workers[2].Identity.PID = innocent.Process.Pid
	b, _ := json.Marshal(list)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	w := start(t, c)
	r := w.until("the role is full", full)
	if slices.Contains(pidsIn(r), innocent.Process.Pid) || proc.Judge(victim) != proc.Gone {
		t.Errorf("workers %v, innocent %d, unlisted %v", pidsIn(r), innocent.Process.Pid, proc.Judge(victim))
	}
	if err := innocent.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the innocent process: %v", err)
	}
	warned := 0
	for _, e := range w.sup.RecentEvents() {
		if e.Type == EventWarning && (e.PID == victim.PID || e.PID == innocent.Process.Pid) {
			warned++
		}
	}
	if warned != 2 {
		t.Errorf("%d warnings", warned)
	}
}

// TestDamagedLists: whatever the list is, there is never a second set.
func TestDamagedLists(t *testing.T) {
	for _, kind := range []string{"missing", "empty", "half", "no segment"} {
		t.Run(kind, func(t *testing.T) {
			c := newConfig(t, "good")
			first := apart(t, c)
			list := readyApart(t, c, 1)
			first.kill()
			path := filepath.Join(roleDir(c.RuntimeDir, "kv"), "workers.json")
			b, _ := os.ReadFile(path)
			switch kind {
			case "missing":
				os.Remove(path)
			case "empty":
				os.WriteFile(path, nil, 0o600)
			case "half":
				os.WriteFile(path, b[:len(b)/2], 0o600)
			case "no segment":
				os.Remove(list.Segment)
			}
			w := start(t, c)
			r := w.until("the role is full", full)
			for _, old := range list.Workers {
				if proc.Judge(old.Identity) != proc.Gone {
					t.Errorf("%v lives beside %v", old.Identity, pidsIn(r))
				}
			}
			if r.Token <= role.MakeToken(1, 1) {
				t.Errorf("token %s", r.Token)
			}
		})
	}
}

// TestEntriesThatAreNotBelieved: a list that was damaged, or written by the
// role's user, names no place that there is not, and nothing twice.
func TestEntriesThatAreNotBelieved(t *testing.T) {
	at := func(index int, name string, pid int) listedWorker {
		return listedWorker{Index: index, Name: name, Identity: proc.Identity{PID: pid, Start: 1}}
	}
	good := []listedWorker{at(0, "kv-0", 10), at(59, "kv-59", 11)}
	for _, bad := range []listedWorker{at(-1, "kv--1", 12), at(60, "kv-60", 12), at(1<<40, "kv-1099511627776", 12), at(1, "kv-2", 12), at(0, "kv-0", 12), at(1, "kv-1", 11)} {
		kept, doubtful := credible("kv", append(slices.Clone(good), bad))
		if !slices.Equal(kept, good) || len(doubtful) != 1 {
			t.Errorf("%+v: kept %+v, not believed: %q", bad, kept, doubtful)
		}
	}
}

func TestWorkersNoLongerInTheConfig(t *testing.T) {
	c := newConfig(t, "good")
	gone := testRole(t, c.Roles[0].Dir, "good")
	gone.Name = "gone"
	c.Roles = append(c.Roles, gone)
	first := apart(t, c)
	list := readyApart(t, c, 1)
	readyRole(t, c, 1, 1)
	first.kill()
	c.Roles = c.Roles[:1]
	c.Roles[0].Workers = 2
	w := start(t, c)
	w.until("the third worker is stopped", func(r RoleStatus) bool {
		return len(r.Workers) == 2 && r.Workers[0].Ready && r.Workers[1].Ready && led(r)
	})
	if proc.Judge(list.Workers[2].Identity) != proc.Gone {
		t.Error("a worker that is not shown any more lives")
	}
	eventually.Holds(t, "the other role is stopped", func() bool {
		_, err := os.Stat(roleDir(c.RuntimeDir, "gone"))
		return os.IsNotExist(err)
	})
	if proc.Judge(list.Workers[0].Identity) == proc.Gone || proc.Judge(list.Workers[1].Identity) == proc.Gone {
		t.Error("a worker that is still wanted was ended")
	}
	if left := strays(roleDir(c.RuntimeDir, "gone"), "", nobody); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestSocketsAreFetched: workers that hand nothing back lose nothing either.
func TestSocketsAreFetched(t *testing.T) {
	c := newConfig(t, "deaf")
	c.Roles[0].Listen = []ListenConfig{{Name: "http", Address: "127.0.0.1:0"}}
	first := apart(t, c)
	readyApart(t, c, 1)
	first.kill()
	w := start(t, c)
	r := w.until("the listener is fetched", func(r RoleStatus) bool { return led(r) && !strings.HasSuffix(r.Listen[0].Address, ":0") })
	if answer, err := dial(t, r.Listen[0].Address); err != nil || answer != fmt.Sprintf("%d 1.1", r.LeaderPID) {
		t.Errorf("the leader answers %q, %v", answer, err)
	}
	w.shutdown()
}

// TestPauseOfAllIsNoFailover: the machine was suspended, say.
func TestPauseOfAllIsNoFailover(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Grace = 6
	cmd := apart(t, c)
	list := readyApart(t, c, 1)
	everybody := append(pidsOf(list), cmd.process.Pid)
	for _, pid := range everybody {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	time.Sleep(time.Second) // three times the grace
	for _, pid := range everybody {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	time.Sleep(time.Second)
	cmd.kill()
	w := start(t, c)
	if r := w.until("the role is adopted", full); r.Term != 1 || !slices.Equal(pidsIn(r), pidsOf(list)) {
		t.Errorf("term %d, workers %v of %v", r.Term, pidsIn(r), pidsOf(list))
	}
}

// TestStraysAreEnded: what a worker left behind under no list.
func TestStraysAreEnded(t *testing.T) {
	c := newConfig(t, "forks")
	first := apart(t, c)
	list := readyApart(t, c, 1)
	first.kill()
	known := func(id proc.Identity) bool {
		return slices.ContainsFunc(list.Workers, func(w listedWorker) bool { return w.Identity == id })
	}
	if got := strays(roleDir(c.RuntimeDir, "kv"), "", known); len(got) != 0 {
		t.Errorf("children of living workers count as strays: %v", got)
	}
	for _, w := range list.Workers {
		syscall.Kill(w.Identity.PID, syscall.SIGKILL)
	}
	var orphans []proc.Identity
	eventually.Holds(t, "the children are orphans", func() bool {
		for _, w := range list.Workers {
			if proc.Judge(w.Identity) != proc.Gone {
				return false
			}
		}
		orphans = strays(roleDir(c.RuntimeDir, "kv"), "", nobody)
		return len(orphans) == 3
	})
	start(t, c).until("the role is full", full)
	for _, id := range orphans {
		if proc.Judge(id) != proc.Gone {
			t.Errorf("%v lives", id)
		}
	}
}

// TestWhatAWorkerLeavesBehindIsEnded: a child in a session of its own survives
// the process group.
func TestWhatAWorkerLeavesBehindIsEnded(t *testing.T) {
	c := newConfig(t, "forks")
	w := start(t, c)
	before := w.until("the role is full", full)
	syscall.Kill(before.LeaderPID, syscall.SIGKILL)
	w.until("it is back", func(r RoleStatus) bool {
		return full(r) && r.Term == 2 && r.LastFailover != nil && r.LastFailover.To == r.Leader
	})
	known := func(id proc.Identity) bool {
		return slices.Contains(pidsIn(w.sup.Snapshot().Roles[0]), id.PID)
	}
	eventually.Holds(t, "its child is gone", func() bool { return len(strays(roleDir(c.RuntimeDir, "kv"), "", known)) == 0 })
	w.shutdown()
	w.noProcesses()
}

// TestNextLeaderIsPromotedAfterTheTree: under fence = "tree" what a dead leader
// had started is gone before the hooks hear of the next one.
func TestNextLeaderIsPromotedAfterTheTree(t *testing.T) {
	c := newConfig(t, "forks")
	dir := roleDir(c.RuntimeDir, "kv")
	left := make(chan int, 10)
	hook := &recorder{on: func(moment string, tr role.Transition) error {
		if moment == "promote" && tr.Previous != "" {
			left <- len(strays(dir, tr.Previous, nobody))
		}
		return nil
	}}
	c.Roles[0].Fence, c.Roles[0].RestartDelay, c.Roles[0].RestartMaxDelay = FenceTree, time.Hour, time.Hour
	c.Roles[0].Hooks = []NamedHooks{{Name: "watch", Hooks: hook}}
	w := start(t, c)
	before := w.until("the role is full", full)
	if n := len(strays(dir, before.Leader, nobody)); n != 2 {
		t.Fatalf("%s has %d processes, want itself and its child", before.Leader, n)
	}
	syscall.Kill(before.LeaderPID, syscall.SIGKILL)
	select {
	case n := <-left:
		if n != 0 {
			t.Errorf("%d processes of %s were there when the next leader was promoted", n, before.Leader)
		}
	case <-time.After(limit):
		t.Fatal("nobody was promoted")
	}
}
