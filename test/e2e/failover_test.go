//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// store is the config of a kv role with a plugin. Its budget is large, because
// the tests kill more than a person would want to see, and its grace too: a
// machine that is busy with other tests must not look like a hang.
const store = `
[role.kv]
command = ["@BIN/kv", "--data", "data"]
workers = 3
tick = "50ms"
grace = %s
fence_timeout = "30s"
failovers = 1000
burst = 1000
restart_delay = "20ms"
restart_max_delay = "200ms"
probation = "0s"
%s

[[role.kv.listen]]
name = "http"
address = "127.0.0.1:0"

[[role.kv.plugin]]
name = "snapshot"
command = ["@BIN/standbyd-snapshot"]
env = { E2E = "@DIR" }
config = { dir = "snapshots", source = "data", every = "1s", keep = 3 }
`

func storeConfig(settings string) string { return fmt.Sprintf(store, "200", settings) }

// hangConfig is storeConfig for tests in which a hang must be found.
func hangConfig(settings string) string { return fmt.Sprintf(store, fmt.Sprint(hangGrace), settings) }

const (
	hangGrace = 30
	hangAfter = (hangGrace + 1) * 50 * time.Millisecond
)

// The leader is killed, again and again, under clients that write.
func TestKillLeader(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, storeConfig(""), 4)
	for i := range rounds(20) {
		l.more(3)
		kill(t, before.LeaderPID, syscall.SIGKILL)
		after := d.successor("kv", before)
		if after.Term != before.Term+1 {
			t.Errorf("round %d: term %d follows %d", i, after.Term, before.Term)
		}
		r := d.record("kv", after.Term)
		if r.Reason != "crash" || r.From != before.Leader || r.FromPID != before.LeaderPID || r.To != after.Leader || r.ToPID != after.LeaderPID {
			t.Errorf("round %d: record %+v of %+v after %+v", i, r, after, before)
		}
		r.measured(t, "detected", r.DetectedUS)
		r.measured(t, "claimed", r.ClaimedUS)
		r.measured(t, "active", r.ActiveUS)
		before = d.whole("kv") // the killed one is back
	}
	r := d.record("kv", before.Term)
	r.measured(t, "hooks", r.HooksUS)
	l.close()
	d.verify("kv")
}

// successor waits until another than before leads.
func (d *daemon) successor(name string, before roleStatus) roleStatus {
	d.t.Helper()
	var r roleStatus
	eventually.Shows(d.t, "another leads", func() (bool, string) {
		r = d.role(name)
		return r.State == "led" && r.LeaderPID != 0 && r.LeaderPID != before.LeaderPID && r.Token > before.Token, fmt.Sprintf("%+v", r)
	})
	return r
}

func (r record) measured(t *testing.T, what string, us *float64) {
	t.Helper()
	if us == nil {
		t.Errorf("term %d: %s_us is null", r.Term, what)
	} else if *us < 0 || *us > patience.Seconds()*1e6 {
		t.Errorf("term %d: %s_us is %v", r.Term, what, *us)
	}
}

// A hung leader is gone before the next one leads.
func TestStopLeader(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, hangConfig(`fence = "process"`), 2)
	for range rounds(3) {
		l.more(3)
		kill(t, before.LeaderPID, syscall.SIGSTOP)
		after := d.successor("kv", before)
		if runs(t, before.LeaderPID) {
			t.Errorf("pid %d is still there although term %d is active", before.LeaderPID, after.Term)
		}
		if r := d.record("kv", after.Term); r.Reason != "hang" {
			t.Errorf("record %+v", r)
		}
		before = d.whole("kv")
	}
	l.close()
	d.verify("kv")
}

// With fence "token" nobody kills the hung leader. It wakes up while another
// leads: nothing that it does then counts, and it joins in again.
func TestStopAndContinueLeader(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, hangConfig(`fence = "token"`), 4)
	for range rounds(3) {
		l.more(3)
		old := before
		kill(t, old.LeaderPID, syscall.SIGSTOP)
		after := d.successor("kv", old)
		// What hangs on the stopped one's connections waits for it; who comes
		// now is served.
		c := newClient()
		if !l.put(c, "while stopped", fmt.Sprint(after.Term)) {
			t.Fatal("no write while the old leader was stopped")
		}
		c.CloseIdleConnections()
		kill(t, old.LeaderPID, syscall.SIGCONT)
		l.more(3)
		if got := l.read(c, "while stopped"); got != fmt.Sprint(after.Term) {
			t.Errorf("after the old leader woke: %q", got)
		}
		before = d.whole("kv")
		if !strings.Contains(fmt.Sprint(before.pids()), fmt.Sprint(old.LeaderPID)) {
			t.Errorf("the old leader, pid %d, did not stay: %v", old.LeaderPID, before.pids())
		}
		if before.Term != after.Term {
			t.Errorf("term %d follows %d although nothing happened", before.Term, after.Term)
		}
	}
	l.close()
	d.verify("kv")
}

// All of them at once: the role comes back with everything.
func TestKillEverybody(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, storeConfig(""), 2)
	for range rounds(3) {
		l.more(3)
		for _, pid := range before.pids() {
			kill(t, pid, syscall.SIGKILL)
		}
		d.successor("kv", before)
		l.more(3)
		before = d.whole("kv")
	}
	l.close()
	d.verify("kv")
}

// The whole machine pauses: nobody is condemned for that.
func TestPauseEverything(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, hangConfig(""), 2)
	l.more(3)
	// The supervisor wakes last, when everybody else beats already, and first.
	for _, last := range []bool{true, false} {
		pids := append([]int{d.cmd.Process.Pid}, before.pids()...)
		for _, pid := range pids {
			kill(t, pid, syscall.SIGSTOP)
		}
		time.Sleep(hangAfter + 2*time.Second)
		if last {
			pids = append(pids[1:], pids[0])
		}
		for _, pid := range pids {
			kill(t, pid, syscall.SIGCONT)
		}
		l.more(3)
		if after := d.whole("kv"); after.Term != before.Term || after.LeaderPID != before.LeaderPID {
			t.Errorf("a pause of everything changed the leader: %+v, before %+v", after, before)
		}
	}
	l.close()
	d.verify("kv")
}

// The standby that takes over dies in the middle of it.
func TestKillDuringTakeover(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, storeConfig(""), 2)
	for i := range rounds(6) {
		l.more(3)
		kill(t, before.LeaderPID, syscall.SIGKILL)
		time.Sleep(time.Duration(i) * 150 * time.Microsecond) // the takeover takes about that long
		for _, w := range before.Workers {
			if w.PID != before.LeaderPID {
				kill(t, w.PID, syscall.SIGKILL)
				break
			}
		}
		d.successor("kv", before)
		l.more(3)
		before = d.whole("kv")
	}
	l.close()
	d.verify("kv")
}

// The role's segment is cut, or its folder removed: other roles do not notice,
// the role goes on in a new segment with everything that it had.
func TestDamagedSegment(t *testing.T) {
	t.Parallel()
	d := configure(t, storeConfig("")+`
[role.other]
command = ["@SELF", "@DIR"]
env = { E2E_PLAYS = "worker-idle" }
`)
	d.start()
	before := d.whole("kv")
	other := d.whole("other")
	l := write(t, d.url, 2)
	for _, damage := range []func(segment string) error{
		func(segment string) error { return os.Truncate(segment, 0) },
		os.Remove,
		func(segment string) error { return os.RemoveAll(filepath.Dir(segment)) },
	} {
		l.more(3)
		if err := damage(before.Segment); err != nil {
			t.Fatal(err)
		}
		eventually.Shows(d.t, "another segment, and a leader in it", func() (bool, string) {
			r := d.role("kv")
			return r.Segment != before.Segment && r.State == "led" && r.Token > before.Token, fmt.Sprintf("%+v", r)
		})
		before = d.whole("kv")
		l.more(3)
	}
	if after := d.whole("other"); after.Term != other.Term || !slices.Equal(after.pids(), other.pids()) {
		t.Errorf("the other role was %+v and is %+v", other, after)
	}
	l.close()
	d.verify("kv")
}
