//go:build linux

package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestA07_ReaperStealsExitStatuses: 500 short children (60 in the quick form), each of which leaves an
// orphan to standbyd, end with statuses that follow from their pids; every one
// is told right, and no zombie is left in the end.
func TestA07_ReaperStealsExitStatuses(t *testing.T) {
	t.Parallel()
	lives := 60
	if os.Getenv("CONFORMANCE") != "" {
		lives = 500
	}
	d := newDaemon(t, `[role.kv]
command = ["/bin/sh", "-c", "[ -e $DIR/enough ] && exec sleep 1000; setsid sh -c 'sleep 0.05; exit 3' & exit $(( $$ % 100 + 1 ))"]
workers = 8
restart_delay = "1ms"
restart_max_delay = "1ms"
burst = 1000000
`)
	events := exec.Command(standbyd, "-c", d.config, "events", "-f", "-o", "json")
	out, err := events.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "standbyd answers", func() bool { _, err := d.run("status"); return err == nil })
	if err := events.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { events.Process.Kill(); events.Wait() }()
	stop := time.AfterFunc(5*patience, func() { events.Process.Kill() })
	defer stop.Stop()
	told, wrong := map[int]bool{}, 0
	lines := bufio.NewScanner(out)
	for len(told) < lives && lines.Scan() {
		var e struct {
			Type string
			PID  int
			Exit *struct {
				Code   *int
				Signal string
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if e.Type != "worker-exited" {
			continue
		}
		told[e.PID] = true
		if e.Exit == nil || e.Exit.Code == nil || *e.Exit.Code != e.PID%100+1 {
			if wrong++; wrong < 5 {
				t.Errorf("pid %d should have ended with %d: %s", e.PID, e.PID%100+1, lines.Text())
			}
		}
	}
	if len(told) < lives {
		t.Fatalf("only %d of %d ends were told", len(told), lives)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "enough"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "no zombie is left", func() bool { return zombies(d.cmd.Process.Pid) == 0 })
}

// TestA07_FirstProcessOfAContainer: standbyd as pid 1 reaps what is given to
// it, obeys SIGTERM, and ends with the documented status.
func TestA07_FirstProcessOfAContainer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("making a pid namespace needs root")
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("there is no unshare(1) here")
	}
	if out, err := exec.Command("unshare", "-pf", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no pid namespace can be made here: %v: %s", err, out)
	}
	d := newDaemon(t, `[role.kv]
command = [$TW, "-fork", "1", "-setsid", "-pids", "$DIR/pids"]
workers = 2

[role.orphans]
command = ["/bin/sh", "-c", "for i in 1 2 3 4 5; do (setsid sleep 0.1 &); done; sleep 1000"]
workers = 1
`, "unshare", "-pf", "--mount-proc")
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	list := children(d.cmd.Process.Pid)
	if len(list) != 1 {
		t.Fatalf("unshare has the children %v", list)
	}
	first := list[0]
	if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", first)); !strings.Contains(string(b), "\t1\n") {
		t.Fatalf("standbyd is not the first process of a namespace:\n%s", b)
	}
	d.main = first
	eventually.Holds(t, "the orphans are reaped", func() bool { return zombies(first) == 0 && !sleeps(first) })
	if err := syscall.Kill(first, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !d.ended() || d.wait() != 0 {
		t.Errorf("it ended with %d", d.wait())
	}
	if !strings.Contains(d.output.String(), "stopping in order") {
		t.Error("it did not stop in order")
	}
}

// children lists the children of a process, dead ones too.
func children(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		b, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(b)) {
			if n, err := strconv.Atoi(field); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// sleeps: an orphan that sleeps is among the children.
func sleeps(pid int) bool {
	for _, child := range children(pid) {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); strings.TrimSpace(string(b)) == "sleep" {
			return true
		}
	}
	return false
}

func zombies(pid int) (n int) {
	for _, child := range children(pid) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if rest := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])); len(rest) > 0 && rest[0] == "Z" {
			n++
		}
	}
	return n
}
