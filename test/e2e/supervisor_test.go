//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/test/eventually"
)

// standbyd is killed, again and again: its workers and their clients do not notice.
func TestKillDaemon(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, storeConfig(""), 4)
	for i := range rounds(10) {
		l.more(3)
		url, failed := d.url, l.failed.Load()
		plugin := d.pluginPID("kv", "snapshot")
		d.end(syscall.SIGKILL)
		eventually.Shows(d.t, "no plugin outlives standbyd", func() (bool, string) {
			var left []string
			for _, p := range d.processes() {
				if strings.Contains(p.command, "standbyd-snapshot") {
					left = append(left, p.String())
				}
			}
			return len(left) == 0 && !runs(t, plugin), strings.Join(left, ", ")
		})
		l.more(3) // while nobody supervises
		d.start()
		after := d.whole("kv")
		if d.url != url {
			t.Errorf("round %d: the address was %s and is %s", i, url, d.url)
		}
		if !slices.Equal(after.pids(), before.pids()) || after.LeaderPID != before.LeaderPID || after.Term != before.Term || after.Token != before.Token {
			t.Fatalf("round %d: adopted %+v, was %+v", i, after, before)
		}
		if n := d.workersOf("kv"); n != 3 {
			t.Errorf("round %d: %d workers run", i, n)
		}
		if n := l.failed.Load(); n != failed {
			t.Errorf("round %d: %d requests failed", i, n-failed)
		}
		d.pluginPID("kv", "snapshot")
	}
	// The adopted ones are looked after like any other.
	kill(t, before.LeaderPID, syscall.SIGKILL)
	after := d.successor("kv", before)
	if after.Term != before.Term+1 {
		t.Errorf("term %d follows %d", after.Term, before.Term)
	}
	d.record("kv", after.Term)
	d.whole("kv")
	l.close()
	d.verify("kv")
	if state := d.end(syscall.SIGTERM); state.ExitCode() != 0 {
		t.Errorf("standbyd ended with %v", state)
	}
	d.gone()
}

// pluginPID waits until the plugin does its duty for the current token.
func (d *daemon) pluginPID(name, plugin string) (pid int) {
	d.t.Helper()
	eventually.Shows(d.t, "plugin "+plugin+" leads with its role", func() (bool, string) {
		r := d.role(name)
		for _, p := range r.Plugins {
			if p.Name == plugin && p.PID != 0 && p.State == "leading" && p.Token == r.Token {
				pid = p.PID
			}
		}
		return pid != 0, fmt.Sprintf("%+v", r.Plugins)
	})
	return pid
}

func (d *daemon) workersOf(name string) (n int) {
	for _, p := range d.processes() {
		if strings.HasPrefix(p.command, filepath.Join(bin, "kv")+" ") {
			n++
		}
	}
	return n
}

// The leader dies while nobody supervises: a standby leads all the same, and
// the next standbyd tells of it and replaces the dead one.
func TestFailoverWithoutDaemon(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, storeConfig(""), 2)
	l.more(3)
	d.end(syscall.SIGKILL)
	kill(t, before.LeaderPID, syscall.SIGKILL)
	l.more(3)
	d.start()
	after := d.whole("kv")
	if after.Term != before.Term+1 || !slices.Contains(before.pids(), after.LeaderPID) {
		t.Errorf("after %+v leads %+v", before, after)
	}
	if r := d.record("kv", after.Term); r.To != after.Leader || r.ToPID != after.LeaderPID {
		t.Errorf("record %+v", r)
	}
	l.close()
	d.verify("kv")
}

// A stopped supervisor stops nothing else.
func TestStopDaemon(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, hangConfig(""), 2)
	l.more(3)
	kill(t, d.cmd.Process.Pid, syscall.SIGSTOP)
	time.Sleep(hangAfter + time.Second)
	l.more(3)
	kill(t, before.LeaderPID, syscall.SIGKILL)
	l.more(3)
	kill(t, d.cmd.Process.Pid, syscall.SIGCONT)
	after := d.successor("kv", before)
	d.whole("kv")
	if after.Term != before.Term+1 {
		t.Errorf("term %d follows %d", after.Term, before.Term)
	}
	d.record("kv", after.Term)
	l.close()
	d.verify("kv")
}

// Supervisor and leader are stopped at once: the standbys tick by themselves,
// find the leader hung, and end it.
func TestStopDaemonAndLeader(t *testing.T) {
	t.Parallel()
	d, before, l := underLoad(t, hangConfig(""), 2)
	l.more(3)
	kill(t, d.cmd.Process.Pid, syscall.SIGSTOP)
	kill(t, before.LeaderPID, syscall.SIGSTOP)
	l.more(6)
	kill(t, d.cmd.Process.Pid, syscall.SIGCONT)
	if after := d.successor("kv", before); after.Term <= before.Term {
		t.Errorf("%+v after %+v", after, before)
	}
	d.whole("kv")
	l.close()
	d.verify("kv")
}

func TestTerminate(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			d, before, l := underLoad(t, storeConfig(""), 2)
			l.more(3)
			began := time.Now()
			state := d.end(sig)
			if state.ExitCode() != 0 {
				t.Errorf("standbyd ended with %v", state)
			}
			l.cancel()
			l.all.Wait()
			t.Logf("ended after %s", time.Since(began).Round(time.Millisecond))
			if left := d.processes(); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
			filepath.WalkDir(filepath.Join(d.dir, "run"), func(path string, e os.DirEntry, err error) error {
				if err == nil && e.Type()&os.ModeSocket != 0 {
					t.Errorf("socket %s is left", path)
				}
				return nil
			})
			if c, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://")); err == nil {
				c.Close()
				t.Error("the role's address still takes connections")
			}
			// Nobody was promoted on the way, and everything is there afterwards.
			d.start()
			after := d.whole("kv")
			for _, r := range d.history("kv") {
				if r.Token > before.Token && r.Token < after.Token {
					t.Errorf("promoted on the way: %+v", r)
				}
			}
			if after.Token <= before.Token {
				t.Errorf("token %d after %d", after.Token, before.Token)
			}
			l.url = d.url
			l.verify()
			d.verify("kv")
		})
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	d := configure(t, `
[role.slow]
command = ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done", "@DIR"]
stop_timeout = "10m"
start_timeout = "10m"
`)
	d.start()
	eventually.Shows(d.t, "the workers run", func() (bool, string) {
		left := d.processes()
		return len(left) >= 3, fmt.Sprint(left)
	})
	kill(t, d.cmd.Process.Pid, syscall.SIGTERM)
	eventually.Shows(d.t, "standbyd stops the role", func() (bool, string) {
		out, err := d.try("status", "-o", "json")
		return err == nil && strings.Contains(out, `"stopping"`), out
	})
	// Not at once: what follows within a quarter of a second is the same signal,
	// sent to the process and to its group.
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	limit := time.After(patience)
	for ended := false; !ended; {
		select {
		case <-d.exited:
			ended = true
		case <-again.C:
			d.cmd.Process.Signal(syscall.SIGTERM)
		case <-limit:
			t.Fatalf("standbyd is still there %s after a second SIGTERM", patience)
		}
	}
	d.gone()
}

func TestTwoDaemons(t *testing.T) {
	t.Parallel()
	d := configure(t, storeConfig(""))
	d.start()
	before := d.whole("kv")
	for range 3 {
		cmd := exec.Command(filepath.Join(bin, "standbyd"), "run", "-c", d.conf)
		cmd.Dir = d.dir
		out, err := cmd.CombinedOutput()
		if exitCode(err) != 1 || !strings.Contains(string(out), fmt.Sprint(d.cmd.Process.Pid)) {
			t.Errorf("the second standbyd: %v, want status 1 and pid %d in %q", err, d.cmd.Process.Pid, out)
		}
	}
	if after := d.whole("kv"); !slices.Equal(after.pids(), before.pids()) || after.Term != before.Term {
		t.Errorf("the first one's role was %+v and is %+v", before, after)
	}
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	d := configure(t, strings.ReplaceAll(storeConfig(""), "127.0.0.1:0", ln.Addr().String()))
	cmd := exec.Command(filepath.Join(bin, "standbyd"), "run", "-c", d.conf)
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	if exitCode(err) != 1 && exitCode(err) != 2 || !strings.Contains(string(out), port) || !strings.Contains(string(out), "listen") {
		t.Errorf("%v: %s", err, out)
	}
	if left := d.processes(); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}
