//go:build linux

package conformance

import (
	"maps"
	"strings"
	"testing"
)

// TestA17_ScaleThereAndBack: places that were given up are filled again, and
// a rolling restart leaves nothing for a later reload to do.
func TestA17_ScaleThereAndBack(t *testing.T) {
	t.Parallel()
	const head = "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n"
	const kv = "[role.kv]\ncommand = [$TW]\nworkers = 3\n"
	d := newDaemon(t, kv)
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	for _, n := range []string{"5", "2", "4", "1", "3"} {
		out := d.must("scale", "kv", n)
		d.whole()
		if got := len(d.pids()); got != int(n[0]-'0') {
			t.Errorf("scale to %s: %d workers run; it printed %s", n, got, out)
		}
	}
	if strings.Contains(d.output.String(), "death history") {
		t.Error("the death history of a place that was added cannot be written")
	}
	d.must("restart", "kv", "--rolling")
	d.whole()
	before := d.pids()
	d.configure(head + kv + "burst = 11\n")
	d.must("reload")
	d.must("scale", "kv", "4")
	d.whole()
	after := d.pids()
	delete(after, "kv-3")
	if !maps.Equal(before, after) {
		t.Errorf("after a rolling restart, a reload of another key and a scale changed %v to %v", before, after)
	}
	// What stands in the segment: it returns when the role is whole again.
	d.configure(head + kv + "burst = 11\ntick = \"90ms\"\n")
	out := d.must("reload")
	r := d.roles()["kv"]
	ready := 0
	for _, w := range r.Workers {
		if w.Ready {
			ready++
		}
	}
	if r.Leader == "" || ready != 3 || !strings.Contains(out, "kv-0") {
		t.Errorf("reload of the tick returned with %d ready workers, leader %q: %s", ready, r.Leader, out)
	}
}

// TestA17_SocketsMove: an address goes to another listener of the role, and to
// a role of another name, in one reload.
func TestA17_SocketsMove(t *testing.T) {
	t.Parallel()
	const head = "[supervisor]\nruntime_dir = \"run\"\nstate_dir = \"state\"\n"
	role := func(name, first, second string) string {
		return "[role." + name + "]\ncommand = [$TW]\nworkers = 2\n[[role." + name + ".listen]]\nname = \"one\"\naddress = \"$DIR/" + first + ".sock\"\n" +
			"[[role." + name + ".listen]]\nname = \"two\"\naddress = \"$DIR/" + second + ".sock\"\n"
	}
	d := newDaemon(t, role("kv", "a", "b"))
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	d.configure(head + role("kv", "b", "a"))
	d.must("reload")
	d.whole()
	if l := d.roles()["kv"].Listen; !strings.HasSuffix(l[0].Address, "/b.sock") || l[0].Name != "one" {
		t.Errorf("swapped: %+v", l)
	}
	d.configure(head + role("other", "b", "a"))
	d.must("reload")
	d.must("wait", "other", "-T", "1m")
	d.whole()
}

// TestA16_AStopIsNoFailure: a leader that is stopped by hand, and has to be
// killed for it, is recorded as stopped and spends nothing of the budget.
func TestA16_AStopIsNoFailure(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "[role.kv]\ncommand = [$TW, \"-ignore-term\"]\nworkers = 2\nstop_timeout = \"500ms\"\ndrain_timeout = \"400ms\"\n")
	d.must("wait", "kv", "-T", "1m")
	d.whole()
	first := d.roles()["kv"].Leader
	d.must("stop", "kv/leader")
	d.must("wait", "kv", "-T", "1m")
	r := d.roles()["kv"]
	if r.Leader == first || r.LastFailover == nil || r.LastFailover.Reason != "stopped" || r.Budget.Spent != 0 {
		t.Errorf("after the stop of %s: leader %s, last failover %+v, budget %+v", first, r.Leader, r.LastFailover, r.Budget)
	}
}
