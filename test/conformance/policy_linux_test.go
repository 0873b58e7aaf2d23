package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/eventually"
	"github.com/standbyd/standbyd/test/shortdir"
)

// policyWait bounds what is waited for with a deadline of its own.
const policyWait = 2 * time.Minute

// shellRole supervises one worker that is a shell script and counts as ready
// when the probe passes.
func shellRole(t *testing.T, script, ready string, change func(*supervisor.RoleConfig)) *supervisor.Supervisor {
	t.Helper()
	dir := shortdir.New(t)
	r := supervisor.DefaultRole()
	r.Name, r.Dir, r.Workers = "kv", dir, 1
	r.Command = []string{"/bin/sh", "-c", script}
	r.Env = map[string]string{"DIR": dir}
	r.Ready = supervisor.Probe{Exec: []string{"/bin/sh", "-c", ready}, Interval: 10 * time.Millisecond, Timeout: policyWait, Threshold: 1}
	r.RestartDelay, r.RestartMaxDelay = time.Millisecond, time.Millisecond
	change(&r)
	s, err := supervisor.New(supervisor.Config{RuntimeDir: filepath.Join(dir, "run"), StateDir: filepath.Join(dir, "state"), Roles: []supervisor.RoleConfig{r}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func untilWorker(t *testing.T, s *supervisor.Supervisor, what string, ok func(supervisor.WorkerStatus) bool) supervisor.WorkerStatus {
	t.Helper()
	var found supervisor.WorkerStatus
	eventually.Shows(t, what, func() (bool, string) {
		w := s.Snapshot().Roles[0].Workers
		if len(w) == 1 {
			found = w[0]
		}
		return len(w) == 1 && ok(found), fmt.Sprintf("%+v", w)
	})
	return found
}

func failed(w supervisor.WorkerStatus) bool { return w.State == supervisor.WorkerFailed }

// A08: zombies do not pile up, and a dead worker is not shown as running.
func TestA08_CrashCyclesLeaveNoZombie(t *testing.T) {
	cycles := 120
	if os.Getenv("CONFORMANCE") != "" {
		cycles = 1000
	}
	s := shellRole(t, "exit 3", "false", func(r *supervisor.RoleConfig) { r.Burst = 1 << 20 })
	last := untilWorker(t, s, fmt.Sprintf("%d restarts", cycles), func(w supervisor.WorkerStatus) bool { return w.Restarts >= cycles })
	if last.LastExit == nil || last.LastExit.Code == nil || *last.LastExit.Code != 3 {
		t.Errorf("%+v", last)
	}
	if _, err := s.Stop(t.Context(), "kv"); err != nil {
		t.Fatal(err)
	}
	left := untilWorker(t, s, "it is stopped", func(w supervisor.WorkerStatus) bool { return w.State == supervisor.WorkerStopped && w.PID == 0 })
	stats, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range stats {
		b, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(b)) {
			if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
				t.Errorf("after %d cycles: %s", left.Restarts, stat)
			}
		}
	}
	_, deaths, err := s.Deaths("kv/0")
	if err != nil || len(deaths) != 100 {
		t.Errorf("%d deaths are known, %v", len(deaths), err)
	}
}

// A16: a crash loop ends in "failed"; a start works at once, and without it the
// loop heals by itself; also one whose worker gets ready each time.
func TestA16_FailedHealsAndStarts(t *testing.T) {
	t.Parallel()
	script := `test -e "$DIR/mended" || exit 3; exec sleep 1000`
	t.Run("by start at once", func(t *testing.T) {
		t.Parallel()
		s := shellRole(t, script, `test -e "$DIR/mended"`, func(r *supervisor.RoleConfig) { r.Burst, r.CoolDown = 4, time.Hour })
		w := untilWorker(t, s, "it gives up", failed)
		if w.Restarts != 3 || !strings.Contains(w.Why, "exit status 3") {
			t.Errorf("%+v", w)
		}
		mend(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), policyWait)
		defer cancel()
		if got, err := s.Start(ctx, "kv"); err != nil || got[0].State != supervisor.WorkerStandby {
			t.Errorf("start: %+v, %v", got, err)
		}
	})
	t.Run("by itself", func(t *testing.T) {
		t.Parallel()
		s := shellRole(t, script, `test -e "$DIR/mended"`, func(r *supervisor.RoleConfig) { r.Burst, r.CoolDown = 4, 500*time.Millisecond })
		untilWorker(t, s, "it gives up", failed)
		mend(t, s)
		untilWorker(t, s, "it is up", func(w supervisor.WorkerStatus) bool { return w.State == supervisor.WorkerStandby })
	})
	t.Run("ready each time", func(t *testing.T) {
		t.Parallel()
		s := shellRole(t, "sleep 0.2; exit 1", "true", func(r *supervisor.RoleConfig) { r.Burst, r.CoolDown = 4, time.Hour })
		untilWorker(t, s, "it gives up", failed)
	})
}

func mend(t *testing.T, s *supervisor.Supervisor) {
	t.Helper()
	dir := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(s.Snapshot().Roles[0].Segment)))) // DIR/run/roles/kv/segment.1
	if err := os.WriteFile(filepath.Join(dir, "mended"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
