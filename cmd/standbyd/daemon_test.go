package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
)

// TestEveryVerb follows one daemon from its start to its shutdown.
func TestEveryVerb(t *testing.T) {
	d := start(t, listenAnywhere)
	if out := d.must("wait", "kv", "--for", "ready", "-T", "50s"); !regexp.MustCompile(`^kv-\d \(pid \d+\) leads kv, token 1\.1\n$`).MatchString(out) {
		t.Errorf("wait: %q", out)
	}

	var s supervisor.Snapshot
	if err := json.Unmarshal([]byte(d.must("status", "-o", "json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Supervisor.Version != version || len(s.Roles) != 1 || s.Roles[0].State != supervisor.RoleLed || len(s.Roles[0].Workers) != 3 {
		t.Errorf("status: %+v", s)
	}
	leader, address := s.Roles[0].LeaderPID, s.Roles[0].Listen[0].Address
	for _, want := range []string{"kv  led by " + s.Roles[0].Leader, "http on " + address, "WORKER", "standby"} {
		if out := d.must("status", "kv"); !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	greeting := d.stdout.String()
	for _, want := range []string{"http on tcp " + address, "  curl http://" + address + "/\n", "  standbyd -c " + d.file + " status\n", "kill -9 $(standbyd -c " + d.file + " pid kv/leader)"} {
		if !strings.Contains(greeting, want) {
			t.Errorf("no %q in the greeting:\n%s", want, greeting)
		}
	}

	if out := d.must("pid", "kv/leader"); out != strconv.Itoa(leader)+"\n" {
		t.Errorf("pid: %q, want %d", out, leader)
	}
	if out := d.must("signal", "kv/leader", "KILL"); out != fmt.Sprintf("sent KILL to %s (pid %d)\n", s.Roles[0].Leader, leader) {
		t.Errorf("signal: %q", out)
	}
	d.must("wait", "kv", "--for", "ready", "-T", "50s")
	story := regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  kv  crash  ` + s.Roles[0].Leader +
		` \(pid \d+\) -> kv-\d \(pid \d+\)  token 1\.2  .*active [0-9.]+(us|ms|s)`)
	eventually.Holds(t, "history has the kill", func() bool { return story.MatchString(d.must("history")) })

	out := d.must("drill", "kv", "--count", "2", "--interval", "10ms")
	if strings.Count(out, "  drill kill  ") != 2 || !strings.Contains(out, "2 rounds of kill on kv") || !strings.Contains(out, "  active ") {
		t.Errorf("drill: %s", out)
	}
	lines := strings.Split(strings.TrimSpace(d.must("history", "kv", "-o", "json")), "\n")
	if len(lines) != 4 {
		t.Errorf("%d records, want 4:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	last := uint64(0)
	for _, line := range lines {
		var r supervisor.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || uint64(r.Token) <= last {
			t.Errorf("record %s: %v, token after %d", line, err, last)
		}
		last = uint64(r.Token)
	}
	if out := d.must("history", "-n", "1"); strings.Count(out, "\n") != 1 {
		t.Errorf("history -n 1: %s", out)
	}
	if out := d.must("events"); !strings.Contains(out, "worker-started") || !strings.Contains(out, "leads, token 1.1") {
		t.Errorf("events:\n%s", out)
	}
	if got, all := d.must("history", "-n", "0"), d.must("history"); got != all || strings.Count(all, "\n") < 4 {
		t.Errorf("history -n 0: %s", got)
	}
	if out := d.must("events", "-n", "0"); !strings.Contains(out, "leads, token 1.1") {
		t.Errorf("events -n 0: %s", out)
	}
	var e supervisor.Event
	if err := json.Unmarshal([]byte(d.must("events", "-n", "1", "-o", "json")), &e); err != nil || e.ID == 0 {
		t.Errorf("events -o json: %+v, %v", e, err)
	}
	eventually.Holds(t, "the leader's output is in the log", func() bool { return strings.Contains(d.must("logs", "kv"), "leading as 1.") })
	if out := d.must("logs", "kv", "-n", "0"); !strings.Contains(out, "leading as 1.") {
		t.Errorf("logs -n 0: %s", out)
	}

	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"ack kv", exitFailed, "not held"},
		{"status web", exitNoSuch, "there are: kv"},
		{"history web", exitNoSuch, "web"},
		{"pid kv/9", exitNoSuch, "kv/0 to kv/2"},
		{"logs web", exitNoSuch, "web"},
		{"drill web", exitNoSuch, "web"},
		{"wait web", exitNoSuch, "web"},
		{"inspect /dev/null", exitFailed, "inspect /dev/null: it is no file with content; segments are RUNTIME_DIR/roles/ROLE/"},
		{"inspect none", exitFailed, "inspect none: there is no such file; segments are RUNTIME_DIR/roles/ROLE/"},
		{"signal kv/0 NOPE", exitUsage, "NOPE"},
		{"drill kv --fault hug", exitUsage, "kill, stop, hang, exit"},
		{"history -n -1", exitUsage, "-n -1"},
		{"status -o yaml", exitUsage, "table and json"},
		{"run", exitFailed, fmt.Sprintf("pid %d", os.Getpid())},
	} {
		code, stdout, stderr := d.call(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("standbyd %s: exit %d, want %d and %q in:\n%s%s", c.args, code, c.code, c.want, stdout, stderr)
		}
	}

	d.must("wait", "kv", "--for", "ready", "-T", "50s")
	if out := d.must("inspect", s.Roles[0].Segment); !strings.Contains(out, "generation 1") || !strings.Contains(out, "crash") || !strings.Contains(out, "kv-2") || strings.Count(out, "alive") != 4 {
		t.Errorf("inspect:\n%s", out)
	}
	var v segmentView
	if err := json.Unmarshal([]byte(d.must("inspect", s.Roles[0].Segment, "-o", "json")), &v); err != nil || v.Term != 4 || len(v.Terms) != 4 {
		t.Errorf("inspect -o json: %+v, %v", v, err)
	}
	if err := json.Unmarshal([]byte(d.must("status", "-o", "json")), &s); err != nil {
		t.Fatal(err)
	}
	var workers []proc.Identity
	for _, w := range s.Roles[0].Workers {
		if id, err := proc.Of(w.PID); err == nil {
			workers = append(workers, id)
		}
	}
	// The daemon is this process, so that shutdown cannot wait for its end.
	code, _, _ := shutdownInProcess(d)
	if code != exitDone {
		t.Errorf("the daemon ended with %d", code)
	}
	for _, id := range workers {
		if proc.Judge(id) != proc.Gone {
			t.Errorf("worker %d is still there", id.PID)
		}
	}
	if _, err := os.Lstat(filepath.Join(d.dir, "run", "standbyd.sock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the control socket is still there: %v", err)
	}
	if code, _, stderr := d.call("status"); code != exitNoDaemon || !strings.Contains(stderr, "standbyd run -c "+d.file) {
		t.Errorf("status without a daemon: exit %d\n%s", code, stderr)
	}
	if code, stdout, stderr := d.call("logs", "kv/0"); code != exitDone || stdout == "" || !strings.Contains(stderr, "logs that it left") {
		t.Errorf("logs without a daemon: exit %d\n%s%s", code, stdout, stderr)
	}
}

// shutdownInProcess sends SIGTERM as a service manager would.
func shutdownInProcess(d *daemon) (code int, stdout, stderr string) {
	d.signals <- syscall.SIGTERM
	return d.exit(), d.stdout.String(), d.stderr.String()
}

func TestTakenPortNamesPortRoleAndKey(t *testing.T) {
	address := takenPort(t)
	d := start(t, fmt.Sprintf("[[role.kv.listen]]\nname = \"http\"\naddress = %q\n", address))
	if code := d.exit(); code != exitFailed {
		t.Errorf("exit %d, want %d", code, exitFailed)
	}
	for _, want := range []string{d.file + ":11:11: role.kv.listen.address: ", address, "choose another address"} {
		if !strings.Contains(d.stderr.String(), want) {
			t.Errorf("no %q in:\n%s", want, d.stderr.String())
		}
	}
}

// TestSecondSignalKills: a worker that ignores SIGTERM holds an orderly stop
// up, and a second signal does not wait for it.
func TestSecondSignalKills(t *testing.T) {
	dir, file := writeConfig(t, "")
	text := "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n[role.stubborn]\nworkers = 1\nstop_timeout = \"10m\"\n" +
		"command = [\"/bin/sh\", \"-c\", \"trap '' TERM; echo here; while :; do sleep 1; done\"]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, dir: dir, file: file, signals: make(chan os.Signal, 4), code: make(chan int, 1)}
	go func() {
		d.code <- run(withSignals(t.Context(), d.signals), []string{"standbyd", "run", "-c", file}, strings.NewReader(""), &d.stdout, &d.stderr)
	}()
	eventually.Holds(t, "the worker runs", func() bool {
		_, stdout, _ := d.call("logs", "stubborn")
		return strings.Contains(stdout, "here")
	})
	d.signals <- os.Interrupt
	eventually.Holds(t, "the stop says whom it waits for", func() bool {
		return strings.Contains(d.stderr.String(), "still stopping: stubborn-0 (pid ")
	})
	time.Sleep(sameSignal) // else it would be the same one
	d.signals <- os.Interrupt
	if code := d.exit(); code != exitDone && code != exitFailed {
		t.Errorf("exit %d\n%s", code, d.stderr.String())
	}
	if !strings.Contains(d.stderr.String(), "killing everything at once") {
		t.Errorf("log:\n%s", d.stderr.String())
	}
}

// TestMissingProgramIsTheRolesState: the others go on.
func TestMissingProgramIsTheRolesState(t *testing.T) {
	d := start(t, "[role.ghost]\ncommand = [\"./not-there\"]\nworkers = 1\n")
	d.must("wait", "kv", "-T", "50s")
	eventually.Holds(t, "status says why ghost has no leader", func() bool {
		return strings.Contains(d.must("status", "ghost"), "not-there")
	})
	if code, _, stderr := d.call("wait", "ghost", "-T", "100ms"); code != exitTimedOut || !strings.Contains(stderr, "timed out after 100ms") {
		t.Errorf("wait for ghost: exit %d\n%s", code, stderr)
	}
	if !strings.Contains(d.stderr.String(), "not-there does not exist (yet)") {
		t.Errorf("no warning in the log:\n%s", d.stderr.String())
	}
}

// TestOneSignalSentTwice: as timeout(1) does, to the process and to its group.
// And a second run names the first one also when only the runtime folder is
// the same; and the control socket comes back.
func TestOneSignalSentTwice(t *testing.T) {
	d := start(t, "")
	d.must("wait", "kv", "-T", "50s")
	raw, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(d.dir, "other.toml")
	text := strings.Replace(string(raw), `state_dir = "state"`, `state_dir = "elsewhere"`, 1)
	if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call("run", "-c", other); code != exitFailed || !strings.Contains(stderr, fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("run with another state folder: exit %d\n%s", code, stderr)
	}
	if err := os.WriteFile(other, []byte(text+"oops oops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := call("status", "-c", other); code != exitDone || !strings.Contains(stdout, "led by") || !strings.Contains(stderr, "looking for the daemon in "+filepath.Join(d.dir, "run")) {
		t.Errorf("status by a file that is no TOML: exit %d\n%s%s", code, stdout, stderr)
	}

	if err := os.Remove(filepath.Join(d.dir, "run", "standbyd.sock")); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the daemon can be reached again", func() bool { code, _, _ := d.call("status"); return code == exitDone })
	eventually.Holds(t, "the warning is in the log", func() bool { return strings.Contains(d.stderr.String(), "it is bound again") })

	d.signals <- os.Interrupt
	d.signals <- os.Interrupt
	if code := d.exit(); code != exitDone || strings.Contains(d.stderr.String(), "killing everything") {
		t.Errorf("exit %d\n%s", code, d.stderr.String())
	}
}
