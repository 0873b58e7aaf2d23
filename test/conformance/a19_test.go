//go:build linux

package conformance

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program makes a copy of this test binary in the test's folder: a program of
// workers that can be removed and put back.
func (d *daemon) program(name string) {
	d.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	path := filepath.Join(d.dir, name)
	if err := os.Link(exe, path); err == nil {
		return
	}
	if out, err := exec.Command("cp", exe, path).CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
}

// stayed counts the workers of a role that are the processes they were.
func (d *daemon) stayed(role string, before map[string]int) (n int) {
	for _, w := range d.roles()[role].Workers {
		if w.PID != 0 && w.PID == before[w.Name] {
			n++
		}
	}
	return n
}

// TestA19_RestartThatDidNotHappen: with the program gone, a restart ends with
// an error that shows what went wrong, and a rolling one keeps the others; a
// role that can never start leaves standbyd and the other roles as they are.
func TestA19_RestartThatDidNotHappen(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, `[role.kv]
command = ["$DIR/worker", "tw"]
workers = 3

[role.never]
command = ["$DIR/not-there"]
workers = 2

[role.other]
command = [$TW]
workers = 2
`)
	d.must("wait", "other", "--for", "ready", "-T", "1m")
	// The program comes late: a role whose program was not there yet is tried again.
	d.program("worker")
	d.must("start", "kv")
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	before, first := d.pids(), d.roles()
	if len(before) != 5 {
		t.Fatalf("the workers are %v", before)
	}

	if err := os.Remove(filepath.Join(d.dir, "worker")); err != nil {
		t.Fatal(err)
	}
	out, err := d.run("restart", "--rolling", "kv")
	if status(err) != 1 || !strings.Contains(out, "did not get ready") || !strings.Contains(out, "no such file") || !strings.Contains(out, filepath.Join(d.dir, "worker")) {
		t.Errorf("restart --rolling ended with %d: %s", status(err), out)
	}
	if strings.Contains(out, "done") {
		t.Errorf("it says that something was done: %s", out)
	}
	r := d.roles()["kv"]
	if n := d.stayed("kv", before); n != 2 || r.LeaderPID != first["kv"].LeaderPID || r.Term != first["kv"].Term {
		t.Errorf("%d of 3 workers are as they were, leader %d in term %d, was %d in %d", n, r.LeaderPID, r.Term, first["kv"].LeaderPID, first["kv"].Term)
	}
	lost := ""
	for _, w := range r.Workers {
		if w.PID == 0 {
			lost = w.Name
			if w.LastExit == nil || !strings.Contains(w.LastExit.Error+w.Why, "no such file") {
				t.Errorf("the status of %s does not tell why it has no process: %+v, %+v", w.Name, w, w.LastExit)
			}
		}
	}
	for _, verb := range []string{"start", "restart"} {
		if out, err := d.run(verb, lost); status(err) != 1 || !strings.Contains(out, "no such file") {
			t.Errorf("%s of the one that was lost ended with %d: %s", verb, status(err), out)
		}
	}

	// One that can never start.
	for _, verb := range []string{"start", "restart"} {
		if out, err := d.run(verb, "never"); status(err) != 1 || !strings.Contains(out, "not-there") {
			t.Errorf("%s of what is not there ended with %d: %s", verb, status(err), out)
		}
	}
	if out := d.must("status", "never"); !strings.Contains(out, "not-there") {
		t.Errorf("status does not say what is missing:\n%s", out)
	}
	now := d.pids()
	delete(before, lost)
	if !maps.Equal(now, before) {
		t.Errorf("workers %v, were %v", now, before)
	}

	d.program("worker")
	if out := d.must("start", "kv"); !strings.Contains(out, lost) {
		t.Errorf("start: %s", out)
	}
	d.must("restart", "--rolling", "kv")
	if d.stayed("kv", before) != 0 {
		t.Errorf("after a rolling restart there are %v, before %v", d.pids(), before)
	}
	if n := d.stayed("other", before); n != 2 {
		t.Errorf("%d of the other role's 2 workers are as they were", n)
	}
}
