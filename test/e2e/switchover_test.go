//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// Not one request fails while the leader is changed by plan, again and again.
func TestSwitchoverUnderLoad(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, storeConfig(""), 4)
	n := 15
	if os.Getenv("SOAK") != "" {
		n = 200
	}
	var gaps []float64
	for i := range n {
		l.more(3)
		args := []string{"switchover", "kv", "-o", "json"}
		to := ""
		if i%2 == 1 {
			to = standby(t, before)
			args = append(args, "--to", to)
		}
		r := lines[record](d, args...)[0]
		if r.Reason != "switchover" || r.From != before.Leader || r.FromPID != before.LeaderPID || r.Term != before.Term+1 || to != "" && r.To != to {
			t.Fatalf("round %d, to %q: %+v after %+v", i, to, r, before)
		}
		r.measured(t, "active", r.ActiveUS)
		gaps = append(gaps, *r.ActiveUS)
		after := d.whole("kv")
		if after.Leader != r.To || after.Term != r.Term {
			t.Fatalf("round %d: %+v leads after %+v", i, after, r)
		}
		if !slices.Equal(after.pids(), before.pids()) {
			t.Errorf("round %d: processes were %v and are %v", i, before.pids(), after.pids())
		}
		before = after
	}
	l.more(3)
	l.close()
	if failed := l.failed.Load(); failed != 0 {
		t.Errorf("%d requests failed in %d switchovers", failed, n)
	}
	slices.Sort(gaps)
	t.Logf("%d switchovers: nobody led for %.0f us (median), %.0f us (worst)", n, gaps[n/2], gaps[n-1])
	d.verify("kv")
}

// standby names a worker that does not lead.
func standby(t *testing.T, r roleStatus) string {
	t.Helper()
	for _, w := range r.Workers {
		if w.Name != r.Leader && w.Ready {
			return w.Name
		}
	}
	t.Fatalf("no standby in %+v", r)
	return ""
}

type ranking struct {
	Leader, To, Refused string
	Workers             []struct {
		Worker     string
		Priority   int
		NoFailover bool
		Place      int
		Chosen     bool
		Why        string
	}
}

// A switchover that cannot be is refused with the reason, and nothing happens.
func TestSwitchoverRefused(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, storeConfig(`
[[role.kv.worker]]
index = 1
nofailover = true
`), 2)
	l.more(3)
	stopped := ""
	for _, w := range before.Workers {
		if w.Name != before.Leader && w.Name != "kv-1" {
			stopped = w.Name
			kill(t, w.PID, syscall.SIGSTOP)
			defer syscall.Kill(w.PID, syscall.SIGCONT)
		}
	}
	if before.Leader == "kv-1" || stopped == "" {
		t.Fatalf("kv-1 has nofailover: %+v", before)
	}
	eventually.Shows(d.t, "the stopped standby is no candidate", func() (bool, string) {
		out, err := d.try("switchover", "kv", "--dry-run")
		return exitCode(err) == 1, out
	})
	out, err := d.try("switchover", "kv")
	if exitCode(err) != 1 || !strings.Contains(out, stopped+" has not beaten for") || !strings.Contains(out, "--to kv-1") {
		t.Errorf("switchover with nobody ready: %v, %s", err, out)
	}
	if out, err := d.try("switchover", "kv", "--to", stopped); exitCode(err) != 1 || !strings.Contains(out, "has not beaten") {
		t.Errorf("switchover to a stopped worker: %v, %s", err, out)
	}
	if out, err := d.try("failover", "kv"); exitCode(err) != 1 || !strings.Contains(out, "no standby is ready") {
		t.Errorf("failover with nobody ready: %v, %s", err, out)
	}
	if out, err := d.try("switchover", "kv", "--to", before.Leader); exitCode(err) != 1 || !strings.Contains(out, "leads already") {
		t.Errorf("switchover to the leader: %v, %s", err, out)
	}
	for _, verb := range []string{"switchover", "failover"} {
		if out, err := d.try(verb, "kv", "--to", "kv-7"); exitCode(err) != 4 {
			t.Errorf("%s to nobody: %v, %s", verb, err, out)
		}
		if out, err := d.try(verb, "nobody"); exitCode(err) != 4 {
			t.Errorf("%s of no role: %v, %s", verb, err, out)
		}
	}
	out, _ = d.try("switchover", "kv", "--dry-run", "-o", "json")
	var r ranking
	if err := json.Unmarshal([]byte(strings.SplitN(out, "\n", 2)[0]), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Refused == "" || r.To != "" || r.Leader != before.Leader || len(r.Workers) != 3 {
		t.Errorf("dry run: %+v", r)
	}
	if after := d.role("kv"); after.Term != before.Term || after.LeaderPID != before.LeaderPID || after.State != "led" {
		t.Errorf("refusals changed the role: %+v, before %+v", after, before)
	}
	l.more(3)
	// By name it may lead.
	rec := lines[record](d, "switchover", "kv", "--to", "kv-1", "-o", "json")[0]
	if rec.To != "kv-1" || rec.Reason != "switchover" {
		t.Errorf("switchover to the one with nofailover: %+v", rec)
	}
	l.more(3)
	l.close()
	if failed := l.failed.Load(); failed != 0 {
		t.Errorf("%d requests failed", failed)
	}
	d.verify("kv")
}

// A failover works on a leader that hangs, and costs nothing of the budget.
func TestFailoverOfAHungLeader(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, strings.Replace(storeConfig(""), "failovers = 1000", "failovers = 1", 1), 2)
	for _, hung := range []bool{true, false, true} {
		l.more(3)
		if hung {
			kill(t, before.LeaderPID, syscall.SIGSTOP)
		}
		to := standby(t, before)
		rec := lines[record](d, "failover", "kv", "--to", to, "-o", "json")[0]
		if rec.Reason != "forced" || rec.To != to || rec.FromPID != before.LeaderPID {
			t.Errorf("%+v after %+v", rec, before)
		}
		if runs(t, before.LeaderPID) {
			t.Errorf("pid %d is still there", before.LeaderPID)
		}
		before = d.whole("kv")
		if before.State != "led" || before.Why != "" {
			t.Errorf("%+v", before)
		}
	}
	l.close()
	d.verify("kv")
}

// In a pause nothing happens by itself: not when the leader dies, not when it
// hangs, not without the daemon. Then it ends, by its time or by resume.
func TestPause(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, hangConfig(""), 2)
	l.more(3)
	d.run("pause", "kv")
	kill(t, before.LeaderPID, syscall.SIGSTOP)
	time.Sleep(hangAfter + time.Second) // a hang would have been found
	kill(t, before.LeaderPID, syscall.SIGCONT)
	l.more(3)
	if after := d.whole("kv"); after.Term != before.Term || !strings.Contains(after.Why, "standbyd resume kv") {
		t.Errorf("%+v, before %+v", after, before)
	}
	// By hand it may be changed, without a request lost.
	if rec := lines[record](d, "switchover", "kv", "-o", "json")[0]; rec.FromPID != before.LeaderPID {
		t.Errorf("%+v", rec)
	}
	before = d.whole("kv")
	l.more(3)

	kill(t, d.cmd.Process.Pid, syscall.SIGKILL)
	<-d.exited
	d.start()
	eventually.Shows(d.t, "the next standbyd knows of the pause", func() (bool, string) {
		r := d.role("kv")
		return strings.Contains(r.Why, "paused"), r.Why
	})
	kill(t, before.LeaderPID, syscall.SIGKILL)
	eventually.Shows(d.t, "the role is paused without a leader", func() (bool, string) {
		r := d.role("kv")
		return r.State == "paused" && r.Leader == "", r.State
	})
	time.Sleep(time.Second) // long enough for a restart and a takeover
	var r roleStatus
	eventually.Shows(d.t, "the leader's place is empty, the others stand by", func() (bool, string) {
		r = d.role("kv")
		for _, w := range r.Workers {
			if w.Name == before.Leader && (w.PID != 0 || !strings.Contains(w.Why, "paused")) || w.Name != before.Leader && !w.Ready {
				return false, fmt.Sprintf("%+v", w)
			}
		}
		return true, ""
	})
	if r.State != "paused" {
		t.Errorf("%+v", r)
	}
	if out, err := d.try("switchover", "kv"); exitCode(err) != 1 || !strings.Contains(out, "nobody leads") {
		t.Errorf("switchover without a leader: %v, %s", err, out)
	}
	d.run("pause", "kv", "--for", "200ms")
	after := d.successor("kv", before)
	if rec := d.record("kv", after.Term); rec.Reason != "crash" || rec.FromPID != before.LeaderPID {
		t.Errorf("%+v", rec)
	}
	before = d.whole("kv") // the leader's place is filled again
	for _, args := range [][]string{{"resume", "kv"}, {"resume"}} {
		if out := d.run(args...); !strings.Contains(out, "paused: nothing to do") {
			t.Errorf("%v of what is not paused: %s", args, out)
		}
	}
	d.run("pause")
	kill(t, before.LeaderPID, syscall.SIGKILL)
	eventually.Shows(d.t, "nobody leads", func() (bool, string) { r := d.role("kv"); return r.State == "paused", r.State })
	d.run("resume")
	d.successor("kv", before)
	d.whole("kv")
	l.close()
	d.verify("kv")
}
