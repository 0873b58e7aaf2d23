//go:build linux

package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// TestMain lets the test binary play processes in cgroups.
func TestMain(m *testing.M) {
	switch os.Getenv("CGROUP_TEST") {
	case "sleep":
		fmt.Println("here")
		time.Sleep(time.Hour)
	case "escape": // a child in a session of its own, with nothing of our environment
		c := exec.Command("/bin/sleep", "1000")
		c.Env, c.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			panic(err)
		}
		fmt.Println(c.Process.Pid)
		time.Sleep(time.Hour)
	case "supervise":
		supervise()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestMountinfo(t *testing.T) {
	for _, c := range []struct {
		name, info, cgroup, dir string
	}{
		{"v2 alone", "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			"0::/system.slice/standbyd.service\n", "/sys/fs/cgroup/system.slice/standbyd.service"},
		{"beside v1", "34 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
			"4:memory:/x\n0::/\n", "/sys/fs/cgroup/unified"},
		{"a part of it", "29 23 0:26 /docker/abc /sys/fs/cgroup ro shared:1 master:2 - cgroup2 cgroup rw\n",
			"0::/docker/abc/sub\n", "/sys/fs/cgroup/sub"},
		{"a space", "29 23 0:26 / /mnt/my\\040cgroups rw - cgroup2 none rw\n", "0::/a\n", "/mnt/my cgroups/a"},
		{"outside", "29 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/../other\n", ""},
		{"none", "34 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "0::/\n", ""},
	} {
		p, ok := path(c.cgroup)
		if !ok {
			t.Fatalf("%s: no path", c.name)
		}
		if dir, ok := folder(mounts(c.info), p); dir != c.dir || ok != (c.dir != "") {
			t.Errorf("%s: %q, %v, want %q", c.name, dir, ok, c.dir)
		}
	}
}

// home opens a home of the test's own below this process's cgroup.
func home(t *testing.T) *Home {
	t.Helper()
	h, err := Open(fmt.Sprintf("test-%d-%s", os.Getpid(), t.Name()), nil, false)
	if errors.Is(err, ErrNone) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		t.Skipf("no cgroups can be made here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(h.Dir()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the home is left: %v", err)
		}
	})
	return h
}

// born starts this binary in a cgroup.
func born(t *testing.T, dir, part string) (first string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "CGROUP_TEST="+part)
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// end ends everything in a cgroup and waits until it is empty.
func end(t *testing.T, c *proc.Cgroup) {
	t.Helper()
	eventually.Holds(t, "it gets empty", func() bool {
		p, err := c.Populated()
		if err == nil && p {
			err = c.End()
		}
		if err != nil {
			t.Fatal(err)
		}
		return !p
	})
}

func TestEndReachesWhoEscaped(t *testing.T) {
	h := home(t)
	c, err := h.Make("role", "0", Limits{}, -1)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Populated(); p || err != nil {
		t.Fatalf("an empty one is populated: %v, %v", p, err)
	}
	pid, err := strconv.Atoi(born(t, c.Path(), "escape"))
	if err != nil {
		t.Fatal(err)
	}
	escaped, err := proc.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := c.PIDs()
	if p, perr := c.Populated(); err != nil || !slices.Contains(pids, pid) || len(pids) != 2 || !p || perr != nil {
		t.Fatalf("%v, %v; populated %v, %v", pids, err, p, perr)
	}
	if err := Remove(c.Path()); err == nil {
		t.Fatal("a cgroup with processes was removed")
	}
	end(t, c)
	if v := proc.Judge(escaped); v != proc.Gone {
		t.Errorf("the process that escaped is %v", v)
	}
	if err := Remove(c.Path()); err != nil {
		t.Error(err)
	}
	if p, err := c.Populated(); p || err != nil {
		t.Errorf("a removed one is populated: %v, %v", p, err)
	}
	if err := c.End(); err != nil {
		t.Errorf("end a removed one: %v", err)
	}
}

// TestNamesAreNeverUsedAgain: whoever remembers the cgroup of a dead worker
// finds either that one or none.
func TestNamesAreNeverUsedAgain(t *testing.T) {
	h := home(t)
	seen := map[string]bool{}
	for range 100 {
		c, err := h.Make("role", "0", Limits{}, os.Getuid())
		if err != nil {
			t.Fatal(err)
		}
		if seen[c.Path()] {
			t.Fatalf("%s again", c.Path())
		}
		seen[c.Path()] = true
		if got := List(h.Dir(), "role"); !slices.Equal(got, []string{c.Path()}) {
			t.Fatalf("listed %v", got)
		}
		if err := Remove(c.Path()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestControllersThatAreMissing(t *testing.T) {
	if _, _, err := own(); err != nil {
		t.Skip(err)
	}
	all := Limits{Memory: 1 << 30, CPU: 50, PIDs: 10}.Controllers()
	if !slices.Equal(all, []string{"memory", "cpu", "pids"}) {
		t.Fatal(all)
	}
	if err := Available([]string{"no-such-controller"}); !errors.Is(err, ErrController) {
		t.Errorf("%v", err)
	}
	if err := Available(nil); err != nil {
		t.Error(err)
	}
	if _, err := Open("test-missing", []string{"no-such-controller"}, false); !errors.Is(err, ErrController) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		t.Errorf("%v", err)
	}
	if dir, _, _ := own(); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, prefix+"test-missing")); err == nil {
			t.Error("a home that could not be opened is left")
		}
	}
}

// supervise opens a home with the controllers in its argument, says where it
// is, and closes it again when it is told to.
func supervise() {
	h, err := Open("test", strings.Fields(os.Getenv("CGROUP_TEST_CONTROLLERS")), os.Getenv("CGROUP_TEST_STAY") == "")
	if err != nil {
		fmt.Println("error", err)
		os.Exit(0)
	}
	c, err := h.Make("role", "0", Limits{}, -1)
	if err != nil {
		panic(err)
	}
	dir, _, _ := own()
	on, _ := words(c.Path(), "cgroup.controllers")
	fmt.Println("in", dir, "with", strings.Join(sortedWords(on), " "))
	os.Stdin.Read(make([]byte, 1))
	if err := errors.Join(Remove(c.Path()), h.Close()); err != nil {
		panic(err)
	}
	dir, _, _ = own()
	fmt.Println("in", dir)
}

// TestSupervisorStepsAside: where controllers are wanted, a supervisor leaves
// its cgroup for one below it, and is back in the end; one that may not leave,
// or is not alone, says so.
func TestSupervisorStepsAside(t *testing.T) {
	base, _, err := own()
	if err != nil {
		t.Skip(err)
	}
	have, err := words(base, "cgroup.controllers")
	if err != nil || len(have) == 0 {
		t.Skipf("%s has no controllers: %v", base, err)
	}
	controller := sortedWords(have)[0]
	on, err := words(base, "cgroup.subtree_control")
	if err != nil {
		t.Fatal(err)
	}
	if !on[controller] {
		if err := passOn(base, []string{controller}); err != nil {
			t.Skipf("%s cannot be passed on: %v", controller, err)
		}
		t.Cleanup(func() {
			if err := write(base, "cgroup.subtree_control", "-"+controller); err != nil {
				t.Error(err)
			}
		})
	}
	h := home(t)
	if err := passOn(h.Dir(), []string{controller}); err != nil {
		t.Fatal(err)
	}
	run := func(env ...string) (lines *bufio.Reader, finish func()) {
		c, err := h.Make("role", "test", Limits{}, -1)
		if err != nil {
			t.Fatal(err)
		}
		if err := passOn(filepath.Dir(c.Path()), []string{controller}); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(c.Path())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), "CGROUP_TEST=supervise", "CGROUP_TEST_CONTROLLERS="+controller), env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
		cmd.Stderr = os.Stderr
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
			end(t, c) // a process that was waited for may be in it for a moment yet
			if err := Remove(c.Path()); err != nil {
				t.Error(err)
			}
		})
		return bufio.NewReader(out), func() { in.Close() }
	}
	lines, finish := run()
	first, _ := lines.ReadString('\n')
	if f := strings.Fields(first); len(f) != 4 || filepath.Base(f[1]) != aside || f[3] != controller {
		t.Fatalf("with controllers: %q", first)
	}
	finish()
	last, _ := lines.ReadString('\n')
	if f := strings.Fields(last); len(f) != 2 || f[1] != filepath.Dir(strings.Fields(first)[1]) {
		t.Errorf("after Close: %q", last)
	}
	lines, finish = run("CGROUP_TEST_STAY=1")
	defer finish()
	if line, _ := lines.ReadString('\n'); !strings.HasPrefix(line, "error") || !strings.Contains(line, "does not allow") {
		t.Errorf("one that may not move: %q", line)
	}
}
