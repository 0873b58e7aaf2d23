//go:build linux

package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// running is one process that executes a worker's program.
type running struct {
	proc.Identity
	worker string
}

// running finds the workers of this daemon's roles in the process table, by
// what standbyd has put into their environment, listed or not.
func (d *daemon) running() (found []running) {
	entries, _ := os.ReadDir("/proc")
	mark := []byte("STANDBYD_SEGMENT=" + filepath.Join(d.dir, "run") + "/")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil || !bytes.Contains(b, mark) {
			continue
		}
		r := running{}
		own := false // not a child of a worker, which has the rest too
		for kv := range bytes.SplitSeq(b, []byte{0}) {
			name, value, _ := bytes.Cut(kv, []byte("="))
			switch string(name) {
			case "STANDBYD_WORKER":
				r.worker = string(value)
			case "STANDBYD_PID":
				own = string(value) == e.Name()
			}
		}
		if r.Identity, err = proc.Of(pid); err == nil && own && r.alive() {
			found = append(found, r)
		}
	}
	return found
}

func (r running) alive() bool { return proc.Judge(r.Identity) != proc.Gone }

// listed waits until status lists exactly the workers that run, and returns them.
func (d *daemon) listed() []running {
	d.t.Helper()
	var all []running
	eventually.Holds(d.t, "status lists the workers that run, and no other", func() bool {
		all = d.running()
		pids := d.pids()
		for _, r := range all {
			if pids[r.worker] != r.PID {
				return false
			}
		}
		return len(all) == len(pids)
	})
	return all
}

// stateOf is the state letter of a process, as in ps; empty if there is none.
func stateOf(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]); len(f) > 0 {
		return string(f[0])
	}
	return ""
}

// never2: no place has two processes at one moment.
func (d *daemon) never2(list []running) {
	d.t.Helper()
	seen := map[string]running{}
	for _, r := range list {
		// The first was there when the second was seen, if it lives still.
		if first, ok := seen[r.worker]; ok && first.alive() && r.alive() {
			d.t.Errorf("%s has two processes, pids %d and %d", r.worker, first.PID, r.PID)
		}
		seen[r.worker] = r
	}
}
