//go:build linux

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/coord/lease"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/test/eventually"
)

// guarded is the role's payload: whose write it was, and its number.
type guarded struct{ Token, Writes uint64 }

// writeGuarded writes the payload until ctx is over, and once more then. The
// file gets a line for the first write that counted, for the first that was
// refused, and for the end.
func writeGuarded(ctx context.Context, l *coord.Leadership, path string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	say := func(what string) { fmt.Fprintf(f, "%d %s %s\n", os.Getpid(), l.Token(), what) }
	claim, err := coord.ClaimOf[guarded](l)
	if err != nil {
		return err
	}
	last := ""
	for over := false; ; {
		v, err := claim.Read()
		if err == nil {
			v.Token, v.Writes = uint64(l.Token()), v.Writes+1
			err = claim.Write(v)
		}
		what := "wrote"
		switch {
		case errors.Is(err, lease.ErrLost):
			what = "was refused"
		case err != nil:
			what = "failed: " + err.Error()
		}
		if what != last {
			say(what)
			last = what
		}
		if over {
			say("ended")
			return nil
		}
		select {
		case <-ctx.Done():
			over = true
		case <-time.After(time.Millisecond):
		}
	}
}

// has waits until a worker has said that of its leadership.
func (d *daemon) has(pid int, token role.Token, what string) {
	d.t.Helper()
	line := fmt.Sprintf("%d %s %s\n", pid, token, what)
	eventually.Holds(d.t, "the workers say "+line, func() bool {
		b, _ := os.ReadFile(d.dir + "/guard")
		return slices.Contains(slices.Collect(strings.Lines(string(b))), line)
	})
}

// TestA14_TwoWriters: a leader that is stopped, and takes no notice of SIGTERM,
// is replaced; whether it is killed before that, or lives on and wakes up:
// nothing that it writes then counts, it learns that it was replaced, and its
// plugin was told of its end before the next one's beginning.
func TestA14_TwoWriters(t *testing.T) {
	for _, fence := range []string{"process", "token"} {
		t.Run(fence, func(t *testing.T) {
			t.Parallel()
			d := newDaemon(t, fmt.Sprintf(`[role.kv]
command = [$TW, "-ignore-term", "-guard", "$DIR/guard"]
workers = 3
tick = "50ms"
grace = 30
fence = %q
failovers = 1000
burst = 1000
restart_delay = "10ms"
stop_timeout = "500ms"
drain_timeout = "400ms"
[[role.kv.plugin]]
name = "diary"
command = [$PLUGIN, "$DIR/told"]
`, fence))
			d.must("wait", "kv", "--for", "ready", "-T", "1m")
			segment, err := lease.Open[guarded](d.roles()["kv"].Segment)
			if err != nil {
				t.Fatal(err)
			}
			defer segment.Close()
			// Whatever is in the payload never goes back to an earlier token.
			var newest atomic.Uint64
			over, watched := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(watched)
				for before := (guarded{}); ; {
					v, _ := segment.Snapshot()
					if v.Token < before.Token || v.Writes < before.Writes {
						t.Errorf("write %d of %s stands after write %d of %s", v.Writes, role.Token(v.Token), before.Writes, role.Token(before.Token))
					}
					before = v
					newest.Store(v.Token)
					select {
					case <-over:
						return
					case <-time.After(100 * time.Microsecond):
					}
				}
			}()
			defer func() { close(over); <-watched }()
			for range int(long(2, 20)) {
				d.whole()
				before := d.roles()["kv"]
				old := identity(t, before.LeaderPID)
				d.has(old.PID, before.Token, "wrote")
				syscall.Kill(old.PID, syscall.SIGSTOP)
				// For the process fence: when the next one's first write is seen, nothing is left of it.
				eventually.Holds(t, "the next one writes", func() bool { return newest.Load() > uint64(before.Token) })
				if gone := proc.Judge(old) == proc.Gone; gone != (fence == "process") {
					t.Fatalf("the next one writes, and the stopped leader, pid %d, is gone: %v", old.PID, gone)
				}
				eventually.Holds(t, "status shows the next one", func() bool { return d.roles()["kv"].Token > before.Token })
				after := d.roles()["kv"]
				if fence == "token" {
					syscall.Kill(old.PID, syscall.SIGCONT)
					d.has(old.PID, before.Token, "was refused")
					d.has(old.PID, before.Token, "ended")
				}
				eventually.Holds(t, "the plugin is told of both", func() bool {
					told := strings.Join(d.told(), "\n")
					end := strings.Index(told, fmt.Sprintf("demote %s ", before.Token))
					begin := strings.Index(told, fmt.Sprintf("promote %s ", after.Token))
					if begin >= 0 && end > begin || begin >= 0 && end < 0 {
						t.Fatalf("of %s and %s the plugin was told:\n%s", before.Token, after.Token, told)
					}
					return begin >= 0
				})
				d.whole()
				if r := d.roles()["kv"]; r.Token != after.Token || r.LastFailover == nil || r.LastFailover.Reason != "hang" {
					t.Errorf("%s led after the hang; now %s, last failover %+v", after.Token, r.Token, r.LastFailover)
				}
				if n := d.stayed("kv", map[string]int{before.Leader: old.PID}); (n == 1) != (fence == "token") {
					t.Errorf("with fence %q the stopped process stayed: %v", fence, n == 1)
				}
			}
			b, _ := os.ReadFile(d.dir + "/guard")
			if strings.Contains(string(b), "failed") || fence == "process" && strings.Contains(string(b), "refused") {
				t.Errorf("the workers say:\n%s", b)
			}
		})
	}
}
