//go:build linux

package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/test/eventually"
)

// onSmallDisk puts the state folder on a file system of its own with 100 KiB.
func (d *daemon) onSmallDisk() {
	d.t.Helper()
	state := filepath.Join(d.dir, "state")
	if err := os.Mkdir(state, 0o750); err != nil {
		d.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "size=100k,mode=0750"); err != nil {
		d.t.Skipf("a small file system cannot be mounted here (wants root): %v", err)
	}
	d.t.Cleanup(func() {
		d.stop()
		unix.Unmount(state, unix.MNT_DETACH)
	})
}

// fill leaves so many free pages on the state folder's disk.
func (d *daemon) fill(pages int) {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.dir, "state", "fill"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	size := int64(0)
	for block := make([]byte, 4096); err == nil; {
		var n int
		n, err = f.Write(block)
		size += int64(n)
	}
	if err := f.Truncate(max(0, size-int64(pages)*4096)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *daemon) makeSpace() { os.Remove(filepath.Join(d.dir, "state", "fill")) }

// wholeFiles: of what is in the state folder nothing is half written, and it
// can be read.
func (d *daemon) wholeFiles() {
	d.t.Helper()
	state := filepath.Join(d.dir, "state")
	records, _ := filepath.Glob(filepath.Join(state, "leases/*.json"))
	for _, file := range append(records, filepath.Join(state, "history.jsonl")) {
		b, err := os.ReadFile(file)
		if err != nil {
			d.t.Error(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(b) {
			d.t.Errorf("%s is damaged: %q", file, b)
		}
		for line := range strings.Lines(string(b)) {
			if strings.HasSuffix(file, ".jsonl") && (!strings.HasSuffix(line, "\n") || !json.Valid([]byte(line))) {
				d.t.Errorf("%s has half a line: %q", file, line)
			}
		}
	}
	counters, _ := filepath.Glob(filepath.Join(state, "leases/*.epoch"))
	for _, file := range counters {
		b, _ := os.ReadFile(file)
		if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err != nil || n == 0 {
			d.t.Errorf("%s has %q", file, b)
		}
	}
	if out, err := d.run("history"); err != nil || !strings.Contains(out, "kv") {
		d.t.Errorf("history: %v, %s", err, out)
	}
}

// TestA13_FullStateFolder: standbyd does not replace itself by exec; the next
// one adopts. On a state folder without space the one that runs goes on, and
// leaders fail over, with it and without it; the start of the next one is
// refused with what is full and what to do, and has touched nothing: it starts
// and adopts once there is space. However little space there is, nothing is
// half written, and no token falls.
func TestA13_FullStateFolder(t *testing.T) {
	t.Parallel()
	d := writeConfig(t, `[role.kv]
command = [$TW, "-leads", "$DIR/leads"]
workers = 3
failovers = 1000
restart_delay = "10ms"
`)
	d.onSmallDisk()
	state := filepath.Join(d.dir, "state")
	d.start()
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	d.fill(0)

	first := d.led(1)
	syscall.Kill(first.pid, syscall.SIGKILL)
	second := d.led(2)
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	d.must("switchover", "kv")
	third := d.led(3)
	d.must("restart", "--rolling", "kv")
	fourth := d.led(4)
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	eventually.Holds(t, "the log says what could not be written", func() bool {
		return strings.Contains(d.output.String(), state) && strings.Contains(d.output.String(), "no space left")
	})
	if second.pid == first.pid || third.pid == second.pid || fourth.pid == third.pid {
		t.Errorf("leaders were %+v, %+v, %+v, %+v", first, second, third, fourth)
	}
	if r := d.roles()["kv"]; r.LeaderPID != fourth.pid || r.Token != fourth.token {
		t.Errorf("%+v leads, status says %d with %s", fourth, r.LeaderPID, r.Token)
	}

	// The next one is refused, and nobody notices.
	before := d.pids()
	d.kill()
	for range 2 {
		d.start()
		if !d.ended() || d.wait() != 1 {
			t.Fatal("a start without space was not refused")
		}
		for _, word := range []string{"state_dir", state, "no space left", "make space", "go on"} {
			if !strings.Contains(d.output.String(), word) {
				t.Errorf("no %q in the refusal: %s", word, d.output)
			}
		}
		if n := len(d.running()); n != 3 {
			t.Errorf("after a start that was refused %d workers run", n)
		}
	}
	syscall.Kill(fourth.pid, syscall.SIGKILL)
	fifth := d.led(5)
	d.makeSpace()
	d.start()
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	if n := d.stayed("kv", before); n != 2 {
		t.Errorf("%d of the 2 workers that were left are adopted: %v, were %v", n, d.pids(), before)
	}
	if r := d.roles()["kv"]; r.LeaderPID != fifth.pid || r.Token != fifth.token {
		t.Errorf("%+v leads, status says %d with %s", fifth, r.LeaderPID, r.Token)
	}
	d.wholeFiles()
	d.must("shutdown")
	d.wait()

	// With little space: it starts, or says why not.
	last, refused, started := fifth.token, 0, 0
	for pages := range 10 {
		d.fill(pages)
		d.start()
		led := false
		eventually.Holds(t, "it leads, or ends", func() bool {
			select {
			case <-d.gone:
				return true
			default:
			}
			_, err := d.run("wait", "kv", "-T", "10ms")
			led = err == nil
			return led
		})
		if led {
			started++
			if token := d.roles()["kv"].Token; token <= last {
				t.Errorf("with %d pages the token is %s, was %s", pages, token, last)
			} else {
				last = token
			}
			d.must("shutdown")
			if code := d.wait(); code != 0 {
				t.Errorf("with %d pages it ended with %d", pages, code)
			}
		} else if strings.Contains(d.output.String(), "make space") && d.wait() == 1 {
			refused++
		} else {
			t.Errorf("with %d pages it ended with %d and does not say why: %s", pages, d.wait(), d.output)
		}
		d.wholeFiles()
		d.makeSpace()
	}
	if refused == 0 || started == 0 {
		t.Errorf("%d starts were refused, %d were not: it was never near the edge", refused, started)
	}
	d.start()
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	if r := d.roles()["kv"]; r.Token <= last || r.Token.Generation() <= role.Token(first.token).Generation() {
		t.Errorf("the token is %s, was %s", r.Token, last)
	}
	t.Logf("%d starts with little space were refused, %d not", refused, started)
}
