//go:build linux

package conformance

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// TestA02_SecondSetOfWorkers: standbyd is killed again and again, every other
// time in the middle of the adoption, too. The workers are the same processes
// with the same leader in the same term; nobody leads anew; and there is one
// plugin, told again of the same token.
func TestA02_SecondSetOfWorkers(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, `[role.kv]
command = [$TW, "-leads", "$DIR/leads"]
workers = 3
[[role.kv.plugin]]
name = "told"
command = [$PLUGIN, "$DIR/told"]
`)
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	d.pluginLeads()
	before, pids := d.roles()["kv"], d.pids()
	for i := range int(long(4, 20)) {
		d.kill()
		eventually.Holds(t, "no plugin outlives standbyd", func() bool { return len(d.pluginPIDs()) == 0 })
		if i%2 == 1 {
			d.start()
			select { // where it is by then differs
			case <-d.gone:
			case <-time.After(time.Duration(i) * 9 * time.Millisecond):
			}
			d.kill()
		}
		d.start()
		d.must("wait", "kv", "-T", "1m")
		d.whole()
		after := d.roles()["kv"]
		if !maps.Equal(d.pids(), pids) || after.Leader != before.Leader || after.Term != before.Term || after.Token != before.Token {
			t.Fatalf("round %d: adopted %v led by %s, token %s; there were %v led by %s, token %s",
				i, d.pids(), after.Leader, after.Token, pids, before.Leader, before.Token)
		}
		if n := len(d.listed()); n != 3 {
			t.Errorf("round %d: %d workers run", i, n)
		}
		if n := len(d.leaderships()); n != 1 {
			t.Errorf("round %d: somebody has led %d times", i, n)
		}
		pid := d.pluginLeads()
		if list := d.pluginPIDs(); len(list) != 1 || list[0] != pid {
			t.Errorf("round %d: plugins %v run, status shows %d", i, list, pid)
		}
	}
	for i, line := range d.told() {
		want := "promote " + before.Token.String() + " adopted "
		if i == 0 {
			want = "promote " + before.Token.String() + " first "
		}
		if !strings.HasPrefix(line, want) {
			t.Errorf("the plugin was told %q, want %q", line, want)
		}
	}
}

// pluginLeads waits until the plugin leads with role kv, and returns its pid.
func (d *daemon) pluginLeads() (pid int) {
	d.t.Helper()
	eventually.Holds(d.t, "the plugin leads", func() bool {
		r := d.roles()["kv"]
		if len(r.Plugins) != 1 || r.Plugins[0].State != "leading" || r.Plugins[0].Token != r.Token {
			return false
		}
		pid = r.Plugins[0].PID
		return true
	})
	return pid
}
