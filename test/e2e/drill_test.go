//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// drillLine is a line of `drill -o json`: a round, or the summary.
type drillLine struct {
	record
	Round    int      `json:"round"`
	Fault    string   `json:"fault"`
	FencedUS *float64 `json:"fenced_us"`
	ServedUS *float64 `json:"served_us"`
	Requests *int     `json:"requests"`
	Failed   *int     `json:"failed"`
	Summary  *struct {
		Fault    string
		Rounds   int
		Requests int
		Active   *struct{ N, Min, P50, P90, P99, Max float64 } `json:"active_us"`
		Served   *struct{ N, Max float64 }                     `json:"served_us"`
	} `json:"summary"`
}

// Every fault, under load: another one leads each time, the round is measured
// with what the probe saw, and the history has the same record.
func TestDrill(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, hangConfig(`progress_timeout = "2s"`), 2)
	for _, fault := range []string{"kill", "stop", "exit", "hang"} {
		drills := lines[drillLine](d, "drill", "kv", "--fault", fault, "--count", "2", "--interval", "50ms", "--probe", d.url+"/status", "-o", "json")
		if len(drills) != 3 || drills[2].Summary == nil {
			t.Fatalf("drill %s: %d lines, want two rounds and a summary", fault, len(drills))
		}
		for i, r := range drills[:2] {
			if r.Round != i+1 || r.Fault != fault || r.Reason != "drill" || r.Token <= before.Token || r.From == r.To && r.FromPID == r.ToPID {
				t.Errorf("drill %s: %+v", fault, r)
			}
			r.measured(t, fault+" detected", r.DetectedUS)
			r.measured(t, fault+" claimed", r.ClaimedUS)
			r.measured(t, fault+" fenced", r.FencedUS)
			r.measured(t, fault+" active", r.ActiveUS)
			r.measured(t, fault+" hooks", r.HooksUS)
			r.measured(t, fault+" served", r.ServedUS)
			if r.Requests == nil || *r.Requests == 0 || r.Failed == nil {
				t.Errorf("drill %s: the probe counted nothing: %+v", fault, r)
			}
			if r.ServedUS != nil && r.ActiveUS != nil && *r.ServedUS < *r.ActiveUS {
				t.Errorf("drill %s: served after %v us by a leader that was active after %v", fault, *r.ServedUS, *r.ActiveUS)
			}
			before.Token = r.Token
			if h := d.record("kv", r.Term); h.Token != r.Token || h.Reason != "drill" || h.ToPID != r.ToPID {
				t.Errorf("history has %+v for %+v", h, r)
			}
		}
		if s := drills[2].Summary; s.Rounds != 2 || s.Fault != fault || s.Requests == 0 || s.Active == nil || s.Active.N != 2 || s.Active.Min > s.Active.Max || s.Served == nil {
			t.Errorf("drill %s: summary %+v", fault, s)
		}
		d.whole("kv")
	}
	// The workers whose ends were wanted have not failed.
	for _, w := range d.whole("kv").Workers {
		if w.Restarts == 0 {
			t.Errorf("%s was never hit: %+v", w.Name, w)
		}
	}
	out := d.run("drill", "kv", "--fault", "kill", "--max-ms", "60000")
	if !strings.Contains(out, "  drill kill  kv-") {
		t.Errorf("drill for people says %q", out)
	}
	d.whole("kv")
	if out, err := d.try("drill", "kv", "--max-ms", "0.001"); exitCode(err) != 5 || !strings.Contains(out, "took longer than 0.001ms") {
		t.Errorf("a drill that is too slow: %v", err)
	}
	if _, err := d.try("drill", "nobody"); exitCode(err) != 4 {
		t.Errorf("drill of a role that is not there: %v", err)
	}
	l.close()
	d.verify("kv")
}

// What would be an outage is refused, with the reason and what to do, and
// nothing has happened then.
func TestDrillThatWouldHurtIsRefused(t *testing.T) {
	t.Parallel()
	d := configure(t, storeConfig("")+"\n[role.lone]\ncommand = [\"@BIN/kv\", \"--data\", \"lone\"]\nworkers = 1\nrestart_delay = \"20ms\"\n\n[[role.lone.listen]]\nname = \"http\"\naddress = \"127.0.0.1:0\"\n")
	d.start()
	kv, lone := d.whole("kv"), d.whole("lone")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"drill", "lone"}, "no standby is ready to take over: the role has one worker"},
		{[]string{"drill", "kv", "--fault", "hang"}, "set progress_timeout in [role.kv]"},
		{[]string{"drill", "kv", "--probe", "http://127.0.0.1:1/"}, "nothing was done to it"},
	} {
		if out, err := d.try(c.args...); exitCode(err) != 1 || !strings.Contains(out, c.want) {
			t.Errorf("%v: %v; want %q", c.args, err, c.want)
		}
	}
	if now := d.whole("kv"); now.Token != kv.Token || now.LeaderPID != kv.LeaderPID {
		t.Errorf("a refused drill changed the leader: %+v", now)
	}
	if now := d.whole("lone"); now.Token != lone.Token || now.LeaderPID != lone.LeaderPID {
		t.Errorf("a refused drill changed the leader: %+v", now)
	}
	if out := d.run("drill", "lone", "--force"); !strings.Contains(out, "lone-0") {
		t.Errorf("forced: %q", out)
	}
	if now := d.whole("lone"); now.Token <= lone.Token {
		t.Errorf("forced, and nothing happened: %+v", now)
	}
	d.verify("kv")
}

// Ctrl-C in the middle of a round: it is finished and reported, no other one
// begins, and the role is whole, under either fence.
func TestInterruptedDrillLeavesTheRoleWhole(t *testing.T) {
	t.Parallel()
	d := configure(t, hangConfig(`fence = "token"`))
	d.start()
	before := d.whole("kv")
	var out bytes.Buffer
	drill := exec.Command(filepath.Join(bin, "standbyd"), "-c", d.conf, "drill", "kv", "--fault", "stop", "--count", "1000", "-o", "json")
	drill.Dir, drill.Stdout = d.dir, &out
	told, err := os.Create(filepath.Join(d.dir, "told"))
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	drill.Stderr = told
	if err := drill.Start(); err != nil {
		t.Fatal(err)
	}
	eventually.Shows(d.t, "a round is under way", func() (bool, string) {
		b, _ := os.ReadFile(told.Name())
		return strings.Contains(string(b), "stop "+before.Leader), string(b)
	})
	drill.Process.Signal(syscall.SIGINT)
	ended := make(chan error, 1)
	go func() { ended <- drill.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(patience):
		drill.Process.Kill()
		t.Fatal("the drill does not end")
	}
	if exitCode(err) != 1 {
		t.Errorf("interrupted: %v", err)
	}
	var one drillLine
	if err := json.Unmarshal(bytes.SplitN(out.Bytes(), []byte("\n"), 2)[0], &one); err != nil || one.From != before.Leader || bytes.Count(out.Bytes(), []byte("\n")) != 2 {
		t.Errorf("%v: %s", err, out.Bytes())
	}
	after := d.whole("kv") // all three: the stopped one goes on
	if after.Token != one.Token || !strings.Contains(out.String(), `"rounds":1`) {
		t.Errorf("role %+v after %s", after, out.String())
	}
	d.verify("kv")
}
