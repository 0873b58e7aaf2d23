package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/rolesock"
	"github.com/standbyd/standbyd/test/eventually"
)

// The workers of these tests.

func init() { workers["says"], workers["newline"], workers["beats"] = says, newline, beats }

func tell(text string) {
	if err := rolesock.Send(os.Getenv("NOTIFY_SOCKET"), text, nil); err != nil {
		fmt.Println(err)
	}
}

// says is a program that takes no seat. TEST_CHILD lets a child of it speak.
func says() int {
	if os.Getenv("TEST_CHILD") == "1" {
		tell("READY=1\nSTATUS=said by a child\nMAINPID=" + strconv.Itoa(os.Getpid()))
		time.Sleep(time.Hour)
	}
	if os.Getenv("TEST_CHILD") == "yes" {
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), "TEST_CHILD=1")
		child.Start()
	} else {
		tell("READY=1\nSTATUS=up and running\nMAINPID=1")
	}
	time.Sleep(time.Hour)
	return 0
}

func newline() int {
	n, _ := strconv.Atoi(os.Getenv("TEST_FD"))
	f := os.NewFile(uintptr(n), "ready")
	for {
		if _, err := os.Stat(os.Getenv("TEST_GO")); err == nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if _, err := f.WriteString("\n"); err != nil {
		fmt.Println(err)
		return 1
	}
	f.Close()
	return work()
}

// beats is silent as soon as the file TEST_GO names its worker.
func beats() int {
	limit, _ := strconv.Atoi(os.Getenv("WATCHDOG_USEC"))
	go func() {
		for {
			if b, _ := os.ReadFile(os.Getenv("TEST_GO")); string(b) != os.Getenv("STANDBYD_WORKER")+"\n" {
				tell("WATCHDOG=1")
			}
			time.Sleep(time.Duration(limit) * time.Microsecond / 10)
		}
	}()
	return work()
}

// mark makes or removes a file that probes look for.
func mark(t *testing.T, path string, there bool) {
	t.Helper()
	var err error
	if there {
		err = os.WriteFile(path, nil, 0o600)
	} else {
		err = os.Remove(path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fileProbe(test, path string) Probe {
	return Probe{Exec: []string{"/bin/sh", "-c", test + " " + path + "-{index}"}, Interval: 5 * time.Millisecond, Timeout: limit, Threshold: 2}
}

// A member does not contend before the probe has found it ready, and a
// supervisor that takes over asks again only those that had not shown it.
func TestReadyProbeGatesMembers(t *testing.T) {
	c := newConfig(t, "good")
	dir := c.Roles[0].Dir
	c.Roles[0].Ready = fileProbe("test -e", filepath.Join(dir, "ready"))
	first := apart(t, c)
	list := func() []listedWorker {
		l, _ := readWorkers(filepath.Join(roleDir(c.RuntimeDir, "kv"), "workers.json"))
		return l.Workers
	}
	eventually.Holds(t, "all three run", func() bool { return len(list()) == 3 })
	mark(t, filepath.Join(dir, "ready-1"), true)
	eventually.Holds(t, "kv-1 is listed as ready", func() bool {
		return slices.ContainsFunc(list(), func(w listedWorker) bool { return w.Ready })
	})
	pids := map[string]int{}
	for _, w := range list() {
		pids[w.Name] = w.Identity.PID
	}
	eventually.Holds(t, "their programs run", func() bool {
		for _, pid := range pids {
			if environOf(pid)[playWorker] == "" { // it is the stage still, which ends with its parent
				return false
			}
		}
		return true
	})
	first.kill()
	mark(t, filepath.Join(dir, "ready-1"), false) // it is not asked any more
	w := start(t, c)
	r := w.until("kv-1 leads", led)
	if r.Leader != "kv-1" || r.LeaderPID != pids["kv-1"] || r.Workers[0].State != WorkerStarting || r.Workers[0].PID != pids["kv-0"] {
		t.Errorf("%+v", r)
	}
	w.until("the others say what they wait for", func(r RoleStatus) bool { return strings.Contains(r.Workers[0].Why, "not ready yet") })
	mark(t, filepath.Join(dir, "ready-0"), true)
	w.until("kv-0 stands by", func(r RoleStatus) bool {
		return r.Workers[0].State == WorkerStandby && r.Workers[2].State == WorkerStarting
	})
	syscall.Kill(pids["kv-1"], syscall.SIGKILL)
	w.until("kv-0 leads", func(r RoleStatus) bool { return led(r) && r.Leader == "kv-0" })
	for _, line := range w.leads() {
		if strings.HasSuffix(line, " "+strconv.Itoa(pids["kv-2"])) {
			t.Errorf("kv-2 was never ready and led: %s", line)
		}
	}
	w.shutdown()
	w.noProcesses()
}

func TestIllWorkersAreReplaced(t *testing.T) {
	c := newConfig(t, "good")
	dir := c.Roles[0].Dir
	c.Roles[0].Health = fileProbe("test ! -e", filepath.Join(dir, "ill"))
	w := start(t, c)
	r := w.until("all are in health", func(r RoleStatus) bool {
		return full(r) && !slices.ContainsFunc(r.Workers, func(w WorkerStatus) bool { return w.Health == nil || !w.Health.Healthy })
	})
	leader := slices.IndexFunc(r.Workers, func(w WorkerStatus) bool { return w.Name == r.Leader })
	standby := (leader + 1) % 3
	ill := func(i int) string { return fmt.Sprintf("%s-%d", filepath.Join(dir, "ill"), i) }

	mark(t, ill(standby), true)
	w.until("the standby is another process", func(now RoleStatus) bool {
		return now.Workers[standby].PID != 0 && now.Workers[standby].PID != r.Workers[standby].PID
	})
	mark(t, ill(standby), false)
	w.until("all are in health again", func(r RoleStatus) bool {
		return full(r) && !slices.ContainsFunc(r.Workers, func(w WorkerStatus) bool { return w.Health == nil || !w.Health.Healthy })
	})
	if now := w.sup.Snapshot().Roles[0]; now.Leader != r.Leader || now.Term != r.Term {
		t.Errorf("a standby was ill, and the leader changed: %s, term %d", now.Leader, now.Term)
	}

	mark(t, ill(leader), true)
	after := w.until("another one leads", func(now RoleStatus) bool {
		return led(now) && now.Leader != r.Leader && now.LastFailover != nil && now.LastFailover.Reason != role.ReasonFirst
	})
	if after.LastFailover.Reason != role.ReasonHang || after.LastFailover.From != r.Leader || !strings.Contains(after.LastFailover.Cause, "health probes") {
		t.Errorf("%+v", after.LastFailover)
	}
	mark(t, ill(leader), false)
	w.until("all are in health at last", func(r RoleStatus) bool {
		return full(r) && !slices.ContainsFunc(r.Workers, func(w WorkerStatus) bool { return w.Health == nil || !w.Health.Healthy })
	})
	name, deaths, err := w.sup.Deaths(fmt.Sprintf("kv/%d", leader))
	if err != nil || len(deaths) == 0 || name != r.Leader || !strings.Contains(deaths[0].Cause, "health probes in a row failed") || !deaths[0].Leader {
		t.Errorf("%s, %+v, %v", name, deaths, err)
	}
	w.shutdown()
	w.noProcesses()
}

func TestSilentWorkerIsKilled(t *testing.T) {
	c := newConfig(t, "beats")
	c.Roles[0].Watchdog = 2 * time.Second
	c.Roles[0].Env["TEST_GO"] = filepath.Join(c.Roles[0].Dir, "silent")
	w := start(t, c)
	r := w.until("it is full", full)
	os.WriteFile(c.Roles[0].Env["TEST_GO"], []byte(r.Leader+"\n"), 0o600)
	w.until("another one leads", func(now RoleStatus) bool {
		return led(now) && now.Leader != r.Leader && now.LastFailover != nil && now.LastFailover.From == r.Leader &&
			now.LastFailover.Reason == role.ReasonHang
	})
	eventually.Holds(t, "its death is known", func() bool {
		_, deaths, err := w.sup.Deaths(r.Leader)
		return err == nil && len(deaths) == 1 && strings.Contains(deaths[0].Cause, "WATCHDOG") && deaths[0].Signal == "SIGKILL"
	})
	w.shutdown()
}

func TestProgramsWithoutASeat(t *testing.T) {
	for _, child := range []string{"", "yes"} {
		t.Run("child "+child, func(t *testing.T) {
			c := newConfig(t, "says")
			c.Roles[0].Workers = 1
			c.Roles[0].Env["TEST_CHILD"] = child
			w := start(t, c)
			r := w.until("it is ready", func(r RoleStatus) bool { return r.Workers[0].State == WorkerStandby })
			got := r.Workers[0]
			if got.Ready || strings.Contains(r.Why+got.Why, "package coord") || r.Leader != "" {
				t.Errorf("%+v", r)
			}
			if child == "" && (got.Status != "up and running" || got.MainPID != 0) {
				t.Errorf("%+v", got)
			}
			if child != "" && (got.Status != "said by a child" || got.MainPID == 0 || got.MainPID == got.PID) {
				t.Errorf("%+v", got)
			}
			// This process is nobody's worker.
			if err := rolesock.Send(w.sup.roles[0].paths.socket(), "STATUS=forged", nil); err != nil {
				t.Fatal(err)
			}
			eventually.Holds(t, "the stranger is named", func() bool {
				return slices.ContainsFunc(w.sup.RecentEvents(), func(e Event) bool {
					return e.Type == EventWarning && strings.Contains(e.Text, "pid "+strconv.Itoa(os.Getpid()))
				})
			})
			if now := w.sup.Snapshot().Roles[0].Workers[0]; now.Status != got.Status {
				t.Errorf("status %q was forged", now.Status)
			}
			w.until("it is said to be an outsider", func(r RoleStatus) bool { return r.Workers[0].Why == noSeat && r.Why == noneSeated })
			if _, err := w.sup.Switchover(t.Context(), "kv", ""); err == nil || !strings.Contains(err.Error(), "takes a seat") {
				t.Errorf("switchover: %v", err)
			}
			if child == "" {
				w.until("a wait for it is in vain", func(r RoleStatus) bool { return r.Workers[0].Unseated })
			}
			w.shutdown()
		})
	}
}

func TestNewlineSaysReady(t *testing.T) {
	c := newConfig(t, "newline")
	r := &c.Roles[0]
	r.Workers, r.Ready.FD = 1, 9
	r.Env["TEST_FD"], r.Env["TEST_GO"] = "9", filepath.Join(r.Dir, "go")
	first := apart(t, c)
	var pid int
	eventually.Holds(t, "it runs", func() bool {
		l, _ := readWorkers(filepath.Join(roleDir(c.RuntimeDir, "kv"), "workers.json"))
		if len(l.Workers) == 1 {
			pid = l.Workers[0].Identity.PID
		}
		return pid != 0
	})
	eventually.Holds(t, "its program runs", func() bool {
		return environOf(pid)["TEST_FD"] == "9" // and not the stage's any more
	})
	first.kill()
	mark(t, r.Env["TEST_GO"], true) // it is said while no supervisor listens
	w := start(t, c)
	if got := w.until("it leads", led); got.LeaderPID != pid {
		t.Errorf("pid %d leads, pid %d said that it is ready", got.LeaderPID, pid)
	}
	w.shutdown()
}

func TestDeathsTellTheLastWords(t *testing.T) {
	c := newConfig(t, "exit")
	c.Roles[0].Workers = 1
	w := start(t, c)
	eventually.Holds(t, "three deaths", func() bool { _, deaths, _ := w.sup.Deaths("kv/0"); return len(deaths) >= 3 })
	w.shutdown()
	_, deaths, err := w.sup.Deaths("kv/0") // from the state folder
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deaths {
		if d.Code == nil || *d.Code != 3 || d.Cause != "exit status 3" || d.PID == 0 || !slices.Contains(d.Lines, "last words") {
			t.Errorf("%+v", d)
		}
	}
}

func TestStatus125IsNotRestarted(t *testing.T) {
	c := newConfig(t, "status")
	c.Roles[0].Workers = 1
	c.Roles[0].Env["TEST_STATUS"] = "125"
	w := start(t, c)
	r := w.until("it stays down", func(r RoleStatus) bool { return r.Workers[0].State == WorkerStopped && r.Workers[0].LastExit != nil })
	if r.Workers[0].Restarts != 0 || !strings.Contains(r.Workers[0].Why, "no_restart_on") {
		t.Errorf("%+v", r.Workers[0])
	}
	w.shutdown()
}
