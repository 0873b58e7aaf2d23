//go:build linux

package supervisor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/internal/cgroup"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

func init() {
	workers["escapes"] = func() int { escape(); return work() }
}

// escape leaves a child in a session of its own that has nothing of our
// environment, and notes its pid.
func escape() {
	child := exec.Command("/bin/sleep", "1000")
	child.Env, child.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		panic(err)
	}
	note("escaped %d", child.Process.Pid)
}

// escaped are the identities that escape noted.
func escaped(t *testing.T, c Config) (ids []proc.Identity) {
	t.Helper()
	b, _ := os.ReadFile(c.Roles[0].Env["TEST_LEADS"])
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "escaped "); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(v))
			id, err := proc.Of(pid)
			if err != nil {
				t.Fatalf("the child that escaped: %v", err)
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// needGroups skips a test where no cgroups can be made.
func needGroups(t *testing.T) {
	t.Helper()
	h, err := cgroup.Open("test-"+strconv.Itoa(os.Getpid()), nil, false)
	if err != nil {
		t.Skipf("no cgroups can be made here: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func groupsOf(c Config) (dirs []string) {
	b, _ := os.ReadFile(homesPath(c.RuntimeDir))
	for home := range strings.FieldsSeq(string(b)) {
		dirs = append(dirs, cgroup.List(home, "kv")...)
	}
	return dirs
}

// TestNobodyEscapesItsCgroup: a child that left the process group and dropped
// every variable is ended with its worker, at a crash and at the end, and
// named; the cgroups go too.
func TestNobodyEscapesItsCgroup(t *testing.T) {
	needGroups(t)
	c := newConfig(t, "escapes")
	c.Roles[0].Workers = 2
	w := start(t, c)
	r := w.until("the role is full", full)
	if got := len(groupsOf(c)); got != 2 {
		t.Fatalf("%d cgroups for 2 workers: %v", got, groupsOf(c))
	}
	if slices.Contains(r.Protection.Missing, "cgroup") {
		t.Errorf("missing: %v", r.Protection.Missing)
	}
	first := escaped(t, c)
	syscall.Kill(r.LeaderPID, syscall.SIGKILL)
	w.until("another leads and the role is full again", func(now RoleStatus) bool { return full(now) && now.LeaderPID != r.LeaderPID })
	gone := 0
	for _, id := range first {
		if proc.Judge(id) == proc.Gone {
			gone++
		}
	}
	if gone != 1 {
		t.Errorf("%d of the children that escaped are gone, want that of the leader", gone)
	}
	named := slices.ContainsFunc(w.sup.RecentEvents(), func(e Event) bool {
		return e.Type == EventWarning && e.Worker == r.Leader && strings.Contains(e.Text, "left behind") && strings.Contains(e.Text, "sleep")
	})
	if !named {
		t.Error("no event names who was left behind")
	}
	var all []proc.Identity
	for _, id := range first {
		if proc.Judge(id) != proc.Gone {
			all = append(all, id)
		}
	}
	if len(groupsOf(c)) != 2 {
		t.Errorf("cgroups: %v", groupsOf(c))
	}
	homes, _ := os.ReadFile(homesPath(c.RuntimeDir))
	w.shutdown()
	for _, id := range all {
		if v := proc.Judge(id); v != proc.Gone {
			t.Errorf("%v is %v after the end", id, v)
		}
	}
	for home := range strings.FieldsSeq(string(homes)) {
		if _, err := os.Stat(home); err == nil {
			t.Errorf("%s is left", home)
		}
	}
	if _, err := os.Stat(homesPath(c.RuntimeDir)); err == nil {
		t.Error("the list of cgroups is left")
	}
}

// TestCgroupsOfACrashedSupervisor: its successor keeps those of the workers
// that it adopts, and ends and removes the others.
func TestCgroupsOfACrashedSupervisor(t *testing.T) {
	needGroups(t)
	c := newConfig(t, "escapes")
	first := apart(t, c)
	list := readyApart(t, c, 1)
	first.kill()
	before := groupsOf(c)
	if len(before) != 3 {
		t.Fatalf("cgroups: %v", before)
	}
	children := escaped(t, c)
	victim := list.Workers[2]
	syscall.Kill(victim.Identity.PID, syscall.SIGKILL)
	eventually.Holds(t, "one worker is dead", func() bool { return proc.Judge(victim.Identity) == proc.Gone })
	alive := func() (n int) {
		for _, id := range children {
			if proc.Judge(id) != proc.Gone {
				n++
			}
		}
		return n
	}
	if n := alive(); n != 3 {
		t.Fatalf("%d children live before the successor", n)
	}
	w := start(t, c)
	r := w.until("the role is full", full)
	if n := alive(); n != 2 {
		t.Errorf("%d children live, want those of the two that were adopted", n)
	}
	after := groupsOf(c)
	for _, l := range list.Workers {
		adopted := l.Name != victim.Name
		if slices.Contains(after, l.Cgroup) != adopted || slices.Contains(pidsIn(r), l.Identity.PID) != adopted {
			t.Errorf("%s: cgroups %v, pids %v", l.Name, after, pidsIn(r))
		}
		if adopted {
			if link, err := os.Readlink(proc.CgroupRecord(filepath.Dir(list.Segment), l.Identity)); err != nil || link != l.Cgroup {
				t.Errorf("record of %s: %q, %v", l.Name, link, err)
			}
		}
	}
	// An adopted worker's tree ends with it, too.
	syscall.Kill(list.Workers[0].Identity.PID, syscall.SIGKILL)
	w.until("it was replaced", func(now RoleStatus) bool { return full(now) && now.Workers[0].PID != list.Workers[0].Identity.PID })
	if n := alive(); n != 1 {
		t.Errorf("%d children live after an adopted worker's death", n)
	}
	w.shutdown()
	if n := alive(); n != 0 {
		t.Errorf("%d children live after the end", n)
	}
}

// TestForeignCgroupsAreLeftAlone: a list of workers, which the role's user can
// write, cannot make the supervisor kill a cgroup that is not below its homes.
func TestForeignCgroupsAreLeftAlone(t *testing.T) {
	needGroups(t)
	foreign, err := cgroup.Open("test-foreign-"+strconv.Itoa(os.Getpid()), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	other, err := foreign.Make("kv", "0", cgroup.Limits{}, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer cgroup.Remove(other.Path())
	g := groups{all: []string{filepath.Dir(foreign.Dir()) + "/standbyd-other"}}
	for _, dir := range []string{other.Path(), "", "/", g.all[0] + "/kv/../../" + filepath.Base(foreign.Dir()) + "/kv/" + filepath.Base(other.Path())} {
		if c := g.ours("kv", dir); c != nil {
			t.Errorf("%q is taken for ours", dir)
		}
	}
	g.all = []string{foreign.Dir()}
	if g.ours("kv", other.Path()) == nil {
		t.Error("our own is not known")
	}
	if g.ours("other", other.Path()) != nil {
		t.Error("one role's is taken for another's")
	}
}

// TestLimitsThatCannotBeApplied: New refuses them, naming the key, and so does
// a config that switches cgroups off.
func TestLimitsThatCannotBeApplied(t *testing.T) {
	for field, set := range map[string]func(*Confinement){
		"memory_max": func(p *Confinement) { p.MemoryMax = 1 << 30 },
		"cpu_max":    func(p *Confinement) { p.CPUMax = 150 },
		"pids_max":   func(p *Confinement) { p.PIDsMax = 100 },
	} {
		c := newConfig(t, "good")
		set(&c.Roles[0].Confine)
		var bad *ConfigError
		if cgroup.Available(c.Roles[0].Confine.groupLimits().Controllers()) != nil {
			if _, err := New(c); !errors.As(err, &bad) || bad.Field != field || bad.Role != "kv" {
				t.Errorf("%s: %v", field, err)
			}
		}
		c.Cgroups = CgroupsOff
		if err := c.Validate(); !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s, and cgroups off: %v", field, err)
		}
	}
}

// TestLimitsAreApplied runs where the controllers exist and this process may
// pass them on.
func TestLimitsAreApplied(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Confine = Confinement{MemoryMax: 256 << 20, CPUMax: 150, PIDsMax: 100}
	c.OwnCgroup = true
	if err := cgroup.Available(c.Roles[0].Confine.groupLimits().Controllers()); err != nil {
		t.Skipf("limits cannot be shown here: %v", err)
	}
	home, err := cgroup.Open("test-"+strconv.Itoa(os.Getpid()), c.Roles[0].Confine.groupLimits().Controllers(), true)
	if err != nil {
		t.Skipf("limits cannot be shown here: %v", err)
	}
	if err := home.Close(); err != nil {
		t.Fatal(err)
	}
	w := start(t, c)
	w.until("the role is full", full)
	for _, dir := range groupsOf(c) {
		for file, want := range map[string]string{"memory.max": "268435456", "cpu.max": "150000 100000", "pids.max": "100"} {
			if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || strings.TrimSpace(string(b)) != want {
				t.Errorf("%s/%s: %q, %v", dir, file, b, err)
			}
		}
	}
}

// TestWithoutCgroups: everything works as before them.
func TestWithoutCgroups(t *testing.T) {
	c := newConfig(t, "forks")
	c.Cgroups = CgroupsOff
	w := start(t, c)
	w.until("the role is full", full)
	if _, err := os.Stat(homesPath(c.RuntimeDir)); err == nil {
		t.Error("there is a list of cgroups")
	}
	w.shutdown()
	w.noProcesses()
}
