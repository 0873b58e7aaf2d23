package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/supervisor"
)

// Commit only diffs of the golden files that you understand.
var update = flag.Bool("update", false, "rewrite golden files")

func us(v float64) *float64 { return &v }

var (
	noon     = time.Date(2026, 11, 30, 12, 0, 1, 0, time.Local)
	failover = supervisor.Record{
		Role: "kv", At: noon, Reason: role.ReasonCrash, Term: 7, Token: role.MakeToken(1, 7),
		From: "kv-0", FromPID: 41, To: "kv-2", ToPID: 43, DetectedUS: us(180.4), ClaimedUS: us(184), FencedUS: us(250), ActiveUS: us(260), HooksUS: us(3100),
	}
)

func TestStory(t *testing.T) {
	want := "2026-11-30 12:00:01  kv  crash  kv-0 (pid 41) -> kv-2 (pid 43)  token 1.7  detected 180us claimed 184us fenced 250us active 260us hooks 3.1ms"
	if got := story(failover); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	first := supervisor.Record{Role: "kv", At: noon, Reason: role.ReasonFirst, Token: role.MakeToken(1, 1), To: "kv-1", ToPID: 42}
	want = "2026-11-30 12:00:01  kv  first  nobody -> kv-1 (pid 42)  token 1.1"
	if got := story(first); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLastFailover(t *testing.T) {
	for reason, want := range map[role.Reason]string{
		role.ReasonCrash:   "1m00s ago: kv-0 (pid 41) died, kv-2 (pid 43) took over;",
		role.ReasonForced:  "1m00s ago: forced failover from kv-0 (pid 41), kv-2 (pid 43) took over;", // also if it was dead already
		role.ReasonStopped: "1m00s ago: kv-0 (pid 41) was stopped, kv-2 (pid 43) took over;",
	} {
		r := failover
		r.Reason = reason
		if got := lastFailover(r, noon.Add(time.Minute)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", reason, got)
		}
	}
}

// An end that standbyd brought about has its real reason, whatever the exit status.
func TestCauseIsTold(t *testing.T) {
	ill := failover
	ill.Reason, ill.Cause = role.ReasonHang, "2 health probes in a row failed;\n503"
	zero := 0
	for what, got := range map[string]string{
		"history":       story(ill),
		"last failover": lastFailover(ill, noon),
		"event":         sentence(supervisor.Event{Type: supervisor.EventFailover, Record: &ill}),
		"last exit":     ending(&supervisor.Exit{Code: &zero, Cause: ill.Cause}),
	} {
		if !strings.Contains(got, "2 health probes in a row failed; 503") || strings.Contains(got, "hung") || strings.Contains(got, "exit 0") {
			t.Errorf("%s: %s", what, got)
		}
	}
}

func TestPhase(t *testing.T) {
	for _, c := range []struct {
		us   *float64
		want string
	}{{nil, "-"}, {us(0), "0us"}, {us(2.84), "2.8us"}, {us(999), "999us"}, {us(1260), "1.3ms"}, {us(2.5e6), "2.50s"}} {
		if got := phase(c.us); got != c.want {
			t.Errorf("phase(%v) = %s, want %s", c.us, got, c.want)
		}
	}
}

// TestStatusTable shows what a user sees, with and without colours.
func TestStatusTable(t *testing.T) {
	at := func(d time.Duration) *time.Time { v := noon.Add(-d); return &v }
	code := 1
	last := failover
	last.At = noon.Add(-time.Minute)
	s := supervisor.Snapshot{
		Supervisor: supervisor.SupervisorStatus{PID: 40, Version: "0.1.0", StartedAt: noon.Add(-3*time.Hour - 4*time.Minute), ConfigFile: "/etc/standbyd/standbyd.toml"},
		Roles: []supervisor.RoleStatus{{
			Name: "kv", State: supervisor.RoleLed, Leader: "kv-2", LeaderPID: 43, Term: 7, Token: role.MakeToken(1, 7),
			Listen: []supervisor.ListenStatus{{Name: "http", Network: "tcp", Address: "127.0.0.1:8080"}},
			Workers: []supervisor.WorkerStatus{
				{Name: "kv-0", PID: 4711, State: supervisor.WorkerStandby, Ready: true, Restarts: 1, StartedAt: at(59 * time.Second), LastExit: &supervisor.Exit{At: *at(time.Minute), PID: 41, Signal: "SIGKILL"}},
				{Name: "kv-1", State: supervisor.WorkerBackoff, Restarts: 12, LastExit: &supervisor.Exit{At: *at(time.Second), Code: &code}, Why: "next start in 3.2s: exit status 1"},
				{Name: "kv-2", PID: 43, State: supervisor.WorkerLeader, Ready: true, StartedAt: at(3 * time.Hour)},
			},
			Plugins: []supervisor.PluginStatus{
				{Name: "snapshot", HookStatus: supervisor.HookStatus{State: "leading", PID: 50, Token: role.MakeToken(1, 7)}},
				{Name: "gc", HookStatus: supervisor.HookStatus{State: "backoff", LastError: "start: the plugin\nwrote junk"}},
			},
			Protection:   supervisor.Protection{Detect: []string{"pidfd", "tick"}, Proof: "gone", Fence: "process", Gate: true, Missing: []string{"robust futex"}},
			LastFailover: &last, DroppedLines: 3,
		}, {
			Name: "mailer", State: supervisor.RoleHeld, Why: "5 leaders died within 1m; look at the logs, then: standbyd ack mailer",
			Workers:    []supervisor.WorkerStatus{{Name: "mailer-0", PID: 60, State: supervisor.WorkerStandby, Ready: true, StartedAt: at(50 * time.Hour)}},
			Protection: supervisor.Protection{Detect: []string{"tick"}, Proof: "exiting", Fence: "token"},
		}},
	}

	var plain, coloured bytes.Buffer
	if err := statusTable(&plain, s, noon, paint{}); err != nil {
		t.Fatal(err)
	}
	if err := statusTable(&coloured, s, noon, paint{true}); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/status.txt", plain.Bytes())
	golden(t, "testdata/status-colours.txt", coloured.Bytes())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

// TestStatusTableIsShort: whatever a worker printed or a plugin returned, each
// thing has one line of bearable length.
func TestStatusTableIsShort(t *testing.T) {
	long := "panic: " + strings.Repeat("very bad\n\tgoroutine 7 [running]:\n", 40)
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("robust futexes in kv-%d", i))
	}
	s := supervisor.Snapshot{Roles: []supervisor.RoleStatus{{
		Name: "kv", State: supervisor.RoleVacant, Why: long, ReloadFailed: long,
		Workers:    []supervisor.WorkerStatus{{Name: "kv-0", State: supervisor.WorkerBackoff, Why: long, LastExit: &supervisor.Exit{At: noon, Error: long}}},
		Plugins:    []supervisor.PluginStatus{{Name: "gc", HookStatus: supervisor.HookStatus{State: "backoff", LastError: long}}},
		Protection: supervisor.Protection{Detect: []string{"tick"}, Missing: names},
	}}}
	var b bytes.Buffer
	if err := statusTable(&b, s, noon, paint{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 11 {
		t.Errorf("%d lines:\n%s", len(lines), b.String())
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > shortWhy+10 {
			t.Errorf("a line of %d: %s", n, line)
		}
	}
	if !strings.Contains(b.String(), "robust futexes in kv-5 and 54 more") {
		t.Errorf("long lists:\n%s", b.String())
	}
}
