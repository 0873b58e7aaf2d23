//go:build linux

package supervisor

import (
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

func init() {
	workers["daemonizes"] = func() int {
		// The shell ends at once: nothing above or in the group of what it
		// started is the worker.
		shell := exec.Command("/bin/sh", "-c", "/bin/sleep 1000 & :")
		shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := shell.Run(); err != nil {
			panic(err)
		}
		return work()
	}
}

// TestDaemonsOfAdoptedWorkersStay: what an adopted worker has started is its
// own, also when all that stood between the two have ended. What is left of
// one that died unseen is ended, and named.
func TestDaemonsOfAdoptedWorkersStay(t *testing.T) {
	for _, mode := range []CgroupMode{CgroupsOff, CgroupsAuto} {
		t.Run(string(mode), func(t *testing.T) {
			if mode == CgroupsAuto {
				needGroups(t)
			}
			c := newConfig(t, "daemonizes")
			c.Cgroups = mode
			first := apart(t, c)
			list := readyApart(t, c, 1)
			first.kill()
			dir := roleDir(c.RuntimeDir, "kv")
			var daemons [3]proc.Identity
			for i, w := range list.Workers {
				known := func(id proc.Identity) bool { return id == w.Identity }
				left := strays(dir, w.Name, known)
				if len(left) != 1 {
					t.Fatalf("%s has started %v", w.Name, left)
				}
				daemons[i] = left[0]
			}
			victim := list.Workers[1].Identity
			syscall.Kill(victim.PID, syscall.SIGKILL)
			eventually.Holds(t, "it is gone", func() bool { return proc.Judge(victim) == proc.Gone })

			w := start(t, c)
			w.until("the role is full", full)
			for i, id := range daemons {
				if v := proc.Judge(id); (v == proc.Gone) != (i == 1) {
					t.Errorf("what %s had started is %v", list.Workers[i].Name, v)
				}
			}
			if mode == CgroupsOff && !slices.ContainsFunc(w.sup.RecentEvents(), func(e Event) bool {
				return e.Type == EventWarning && e.PID == daemons[1].PID && strings.HasPrefix(e.Text, "sleep was started for this role and is on no list")
			}) {
				t.Error("it is not said what was ended")
			}
			w.shutdown()
			w.noProcesses()
		})
	}
}

// TestStraysOfAnEarlierProcess: a pid alone, which may have been given to
// another worker since, makes nobody its descendant.
func TestStraysOfAnEarlierProcess(t *testing.T) {
	child := exec.Command("/bin/sleep", "1000")
	worker := proc.Identity{PID: 4711}
	child.Env = []string{"STANDBYD_PID=4711", "STANDBYD_WORKER=kv-0", "STANDBYD_SEGMENT=/run/kv/segment.2"}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { child.Process.Kill(); child.Wait() }()
	var id proc.Identity
	eventually.Holds(t, "it shows its environment", func() bool {
		id, _ = proc.Of(child.Process.Pid)
		return environOf(child.Process.Pid)["STANDBYD_PID"] == "4711"
	})
	worker.Boot, worker.PIDNS, worker.Start = id.Boot, id.PIDNS, id.Start
	if !descends(id, worker, "kv-0", "/run/kv/segment.2") {
		t.Error("a child of the worker is none")
	}
	later := worker
	later.Start++
	for name, no := range map[string]bool{
		"of an earlier process":    descends(id, later, "kv-0", "/run/kv/segment.2"),
		"of another place":         descends(id, worker, "kv-1", "/run/kv/segment.2"),
		"of an earlier generation": descends(id, worker, "kv-0", "/run/kv/segment.3"),
		"of another pid":           descends(id, proc.Identity{PID: 12, Start: id.Start, Boot: id.Boot, PIDNS: id.PIDNS}, "kv-0", "/run/kv/segment.2"),
	} {
		if no {
			t.Errorf("one %s is taken for a descendant", name)
		}
	}
}
