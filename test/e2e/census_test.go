//go:build linux

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
)

// census is what one role costs while it is whole: everything that a death
// could leave behind.
type census struct {
	goroutines, threads, fds, zombies int // of the supervisor
	seats                             int // taken in the role's segment
	processes                         int // workers, plugins, and whatever they started
	cgroups                           int // of the role's workers, where the supervisor makes any
	workerFDs, workerThreads          int // of one worker that is not killed
	files                             []string
}

func (c census) String() string {
	return fmt.Sprintf("supervisor: %d goroutines, %d threads, %d descriptors, %d zombies; %d seats, %d processes, %d cgroups, %d files; surviving worker: %d threads, %d descriptors",
		c.goroutines, c.threads, c.fds, c.zombies, c.seats, c.processes, c.cgroups, len(c.files), c.workerThreads, c.workerFDs)
}

// over says what there is more of than before, beyond what comes and goes.
func (c census) over(before census) []string {
	var more []string
	for _, n := range []struct {
		what               string
		now, before, slack int
	}{
		{"goroutines of the supervisor", c.goroutines, before.goroutines, 6},
		{"threads of the supervisor", c.threads, before.threads, 8}, // Go keeps those that it once needed at the same time
		{"descriptors of the supervisor", c.fds, before.fds, 4},
		{"zombies of the supervisor", c.zombies, 0, 0},
		{"seats of the segment", c.seats, before.seats, 0},
		{"processes", c.processes, before.processes, 0},
		{"cgroups", c.cgroups, before.cgroups, 0},
		{"threads of the surviving worker", c.workerThreads, before.workerThreads, 8},
		{"descriptors of the surviving worker", c.workerFDs, before.workerFDs, 2},
	} {
		if n.now > n.before+n.slack {
			more = append(more, fmt.Sprintf("%d %s, were %d", n.now, n.what, n.before))
		}
	}
	// Some are called after a life, by numbers: of each kind there are as many.
	kinds := func(files []string) map[string]int {
		n := map[string]int{}
		for _, f := range files {
			n[digits.ReplaceAllString(f, "N")]++
		}
		return n
	}
	was := kinds(before.files)
	for kind, n := range kinds(c.files) {
		if n > was[kind] {
			more = append(more, fmt.Sprintf("%d files %s, were %d", n, kind, was[kind]))
		}
	}
	return more
}

var digits = regexp.MustCompile("[0-9]+")

// count takes the census of a role; survivor is a worker that is left alone.
func (d *daemon) count(name string, survivor int) census {
	d.t.Helper()
	r, pid := d.whole(name), d.cmd.Process.Pid
	m := d.metrics()
	c := census{
		goroutines: m["go_goroutines"], threads: entries(d, "/proc/%d/task", pid), fds: m["process_open_fds"],
		zombies: zombiesOf(pid), processes: len(d.processes()),
		cgroups:   cgroupsBeside(survivor),
		workerFDs: entries(d, "/proc/%d/fd", survivor), workerThreads: entries(d, "/proc/%d/task", survivor),
	}
	seg, err := shm.OpenReadOnly(r.Segment)
	if err != nil {
		d.t.Fatal(err)
	}
	defer seg.Close()
	c.seats = len(heartbeat.NewTable(seg).Members())
	for _, dir := range []string{"run", "state"} {
		err := filepath.WalkDir(filepath.Join(d.dir, dir), func(path string, _ fs.DirEntry, err error) error {
			if path, rel := filepath.Rel(d.dir, path); rel == nil {
				c.files = append(c.files, path)
			}
			return err
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
	return c
}

func entries(d *daemon, format string, pid int) int {
	d.t.Helper()
	all, err := os.ReadDir(fmt.Sprintf(format, pid))
	if err != nil {
		d.t.Fatal(err)
	}
	return len(all)
}

// cgroupsBeside counts the cgroups beside the one that a worker is in, itself
// included; 0 if it has none of its own.
func cgroupsBeside(pid int) (n int) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	for line := range strings.Lines(string(b)) {
		own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok || !strings.Contains(own, "/standbyd-") {
			continue
		}
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			all, _ := os.ReadDir(filepath.Join(mount, filepath.Dir(own)))
			for _, e := range all {
				if e.IsDir() {
					n++
				}
			}
		}
	}
	return n
}

// zombiesOf counts the children of pid that nobody has reaped.
func zombiesOf(pid int) (n int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		b, _ := os.ReadFile(stat)
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) > 1 && f[0] == "Z" && f[1] == strconv.Itoa(pid) {
			n++
		}
	}
	return n
}

// metrics reads the whole numbers that have no labels from the supervisor's
// own metrics.
func (d *daemon) metrics() map[string]int {
	d.t.Helper()
	c := &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(d.dir, "run", "standbyd.sock"))
		},
	}}
	res, err := c.Get("http://standbyd/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	all := map[string]int{}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			if n, err := strconv.Atoi(value); err == nil {
				all[name] = n
			}
		}
	}
	for _, name := range []string{"go_goroutines", "process_open_fds"} {
		if all[name] == 0 {
			d.t.Fatalf("the metrics have no %s: %v", name, all)
		}
	}
	return all
}

// goroutines counts those in the last dump that a program's log has.
func goroutines(log []byte) (n int) {
	text := string(log)
	if at := strings.LastIndex(text, "SIGQUIT: quit"); at >= 0 {
		text = text[at:]
	}
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(line, "goroutine "); ok && strings.Contains(rest, " [") {
			n++
		}
	}
	return n
}
