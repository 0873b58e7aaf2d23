//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/verify"
)

// The leader is killed a thousand times in a row under a client that writes:
// the whole history is in order, and no death leaves anything behind.
func TestManyKills(t *testing.T) {
	t.Parallel()
	kills := 12
	if os.Getenv("SOAK") != "" {
		kills = 1000
	}
	// The fourth worker never leads, so that it sees every death.
	const survivor = 3
	conf := storeConfig("[[role.kv.worker]]\nindex = 3\nnofailover = true\n")
	conf = strings.Replace(conf, "workers = 3", "workers = 4", 1)
	conf = strings.Replace(conf, "burst = 1000", "burst = 100000", 1)
	conf = strings.Replace(conf, "failovers = 1000", "failovers = 100000", 1)
	d := configure(t, conf)
	d.start()
	before := d.whole("kv")
	witness := before.Workers[survivor]
	events := d.follow()
	l := write(t, d.url, 1)
	leads := map[uint64]verify.Entry{}
	killLeader := func() {
		l.more(1)
		kill(t, before.LeaderPID, syscall.SIGKILL)
		d.successor("kv", before)
		before = d.whole("kv")
		remember(t, before.Segment, leads)
	}
	for range 5 { // what is made once is made now
		killLeader()
	}
	start := d.count("kv", witness.PID)
	t.Logf("before: %v", start)
	began := time.Now()
	for i := range kills {
		killLeader()
		if (i+1)%100 == 0 {
			t.Logf("%d kills in %s: %v", i+1, time.Since(began).Round(time.Second), d.count("kv", witness.PID))
		}
	}
	var over []string
	var after census
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		after = d.count("kv", witness.PID)
		if over = after.over(start); over == nil || time.Now().After(deadline) {
			break
		}
	}
	t.Logf("after %d kills in %s: %v", kills, time.Since(began).Round(time.Second), after)
	for _, what := range over {
		t.Errorf("left behind by %d kills: %s", kills, what)
	}
	if now := before.Workers[survivor]; now.PID != witness.PID || now.Restarts != witness.Restarts {
		t.Errorf("the worker that nobody killed was %+v and is %+v", witness, now)
	}
	l.close()

	// The history, three times: as the segment, the supervisor's events and its
	// records tell it.
	var all []verify.Entry
	for term := uint64(1); term <= before.Term; term++ {
		e, ok := leads[term]
		if !ok {
			t.Errorf("the segment's ring never showed term %d", term)
		}
		all = append(all, e)
	}
	for _, v := range verify.Ring(before.Token>>42, all).Check() {
		t.Errorf("the segment: %v", v)
	}
	h, err := verify.Events("kv", bytes.NewReader(events(before.Token)))
	if err != nil {
		t.Errorf("events: %v", err)
	}
	for _, v := range h.Check() {
		t.Errorf("events: %v", v)
	}
	if n := len(h.Leads); n < kills {
		t.Errorf("the events know %d leaders of %d kills", n, kills)
	}
	if n := len(d.history("kv")); n < kills+5 {
		t.Errorf("the history has %d records of %d kills", n, kills+5)
	}
	d.verify("kv")
	d.sameGoroutines("kv", before.Workers[survivor])
}

// remember notes what the segment's ring has of each term.
func remember(t *testing.T, segment string, leads map[uint64]verify.Entry) {
	t.Helper()
	seg, err := shm.OpenReadOnly(segment)
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	for _, e := range election.Attach(seg).Ring() {
		leads[e.Term] = verify.Entry{Term: e.Term, PID: e.PID, ActiveAt: e.ActiveAt, RetiredAt: e.RetiredAt}
	}
}

// follow keeps every event from now on. The function that it returns waits for
// the promotion of a token, and fails the test if an event is missing.
func (d *daemon) follow() func(token uint64) []byte {
	d.t.Helper()
	file := filepath.Join(d.dir, "events.jsonl")
	out, err := os.Create(file)
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "standbyd"), "-c", d.conf, "events", "-f", "-o", "json")
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	out.Close()
	d.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return func(token uint64) []byte {
		d.t.Helper()
		var all []byte
		told := fmt.Sprintf(`"token":"%d"`, token)
		eventually.Shows(d.t, "the events tell of the last promotion", func() (bool, string) {
			all, _ = os.ReadFile(file)
			for line := range bytes.Lines(all) {
				if bytes.Contains(line, []byte(told)) && bytes.Contains(line, []byte(verify.Promote.String())) && bytes.HasSuffix(line, []byte("\n")) {
					return true, ""
				}
			}
			return false, string(all[max(0, len(all)-500):])
		})
		if bytes.Contains(all, []byte(`"dropped":`)) {
			d.t.Error("events were dropped, although somebody read them")
		}
		return all[:bytes.LastIndexByte(all, '\n')+1]
	}
}

// sameGoroutines lets a worker that saw it all and its replacement, which saw
// nothing, say what runs in them: it is the same.
func (d *daemon) sameGoroutines(role string, w workerStatus) {
	d.t.Helper()
	log := filepath.Join(d.dir, "state", "logs", w.Name+".log")
	quit := func(w workerStatus) (workerStatus, int) {
		d.t.Helper()
		kill(d.t, w.PID, syscall.SIGQUIT)
		var next workerStatus
		eventually.Shows(d.t, "a worker that was asked what runs is replaced", func() (bool, string) {
			for _, next = range d.role(role).Workers {
				if next.Name == w.Name && next.PID != 0 && next.PID != w.PID && next.Ready {
					return true, ""
				}
			}
			return false, fmt.Sprintf("%+v", next)
		})
		b, err := os.ReadFile(log)
		if err != nil {
			d.t.Fatal(err)
		}
		return next, goroutines(b)
	}
	next, old := quit(w)
	_, fresh := quit(next)
	d.t.Logf("the surviving worker had %d goroutines, its replacement has %d", old, fresh)
	if old == 0 || fresh == 0 || old > fresh+4 {
		d.t.Errorf("%d goroutines in the surviving worker, %d in a new one", old, fresh)
	}
}
