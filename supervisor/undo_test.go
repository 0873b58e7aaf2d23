package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/test/eventually"
)

// changed is the config with another first role.
func changed(c Config, edit func(*RoleConfig)) Config {
	rc := c.Roles[0].copy()
	edit(&rc)
	c.Roles = append([]RoleConfig{rc}, c.Roles[1:]...)
	return c
}

func (r RoleStatus) pidOf(worker string) int {
	for _, w := range r.Workers {
		if w.Name == worker {
			return w.PID
		}
	}
	return 0
}

// TestReloadThatFailsIsUndone: whichever worker does not get ready with the new
// settings, in the end all run with the earlier ones, and it says why.
func TestReloadThatFailsIsUndone(t *testing.T) {
	for kind, fails := range map[string]func(RoleStatus) string{
		"the first standby": func(r RoleStatus) string {
			for i, w := range r.Workers {
				if w.Name != r.Leader {
					return strconv.Itoa(i)
				}
			}
			return ""
		},
		"the leader's place": func(r RoleStatus) string {
			return strings.TrimPrefix(r.Leader, "kv-")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			c := newConfig(t, "good")
			c.Roles[0].Listen = []ListenConfig{{Name: "http", Address: "127.0.0.1:0"}}
			w := start(t, c)
			before := w.until("the role is full", full)
			fails := fails(before)
			bad := changed(c, func(rc *RoleConfig) {
				rc.Env[playWorker], rc.Env["TEST_FAILS"] = "picky", fails
				rc.Listen = append(rc.Listen, ListenConfig{Name: "more", Address: "127.0.0.1:0"})
			})
			done, err := w.sup.Reload(context.Background(), bad)
			const reason = "started with the new settings, did not get ready: exit status 4"
			if err == nil || !strings.Contains(err.Error(), "kv-"+fails+", "+reason) || !strings.Contains(err.Error(), "runs on with the settings before") {
				t.Fatalf("the reload: %v", err)
			}
			if r := done.Roles[0]; !r.Reverted || len(r.Left) != 0 {
				t.Errorf("the reload says %+v", r)
			}
			after := w.until("the role is full", full)
			if !strings.Contains(after.ReloadFailed, reason) || len(after.Listen) != 1 {
				t.Errorf("status: %q, %+v", after.ReloadFailed, after.Listen)
			}
			if slices.ContainsFunc(after.Workers, func(ws WorkerStatus) bool { return ws.Outdated }) {
				t.Errorf("some worker is outdated: %+v", after.Workers)
			}
			if kind == "the first standby" {
				for _, ws := range before.Workers {
					if same := after.pidOf(ws.Name) == ws.PID; same == strings.HasSuffix(ws.Name, fails) {
						t.Errorf("%s was pid %d and is %d", ws.Name, ws.PID, after.pidOf(ws.Name))
					}
				}
				if after.Token != before.Token {
					t.Errorf("token %s after %s", after.Token, before.Token)
				}
			}
			// What is at work is the config before.
			if plan, err := w.sup.Plan(c); err != nil || len(plan.Changes) != 0 {
				t.Errorf("a plan for the config before: %+v, %v", plan, err)
			}
			if plan, err := w.sup.Plan(bad); err != nil || len(plan.Changes) != 2 {
				t.Errorf("a plan for the bad config: %+v, %v", plan, err)
			}
			if _, err := w.sup.Reload(context.Background(), c); err != nil {
				t.Errorf("a reload of the config before: %v", err)
			}
			still := w.until("the failure is no longer shown", func(r RoleStatus) bool { return full(r) && r.ReloadFailed == "" })
			for _, ws := range after.Workers {
				if still.pidOf(ws.Name) != ws.PID {
					t.Errorf("%s was restarted by a reload that changes nothing", ws.Name)
				}
			}
			good := changed(c, func(rc *RoleConfig) { rc.Env["TEST_NOTHING"] = "1" })
			if _, err := w.sup.Reload(context.Background(), good); err != nil {
				t.Errorf("a good reload afterwards: %v", err)
			}
		})
	}
}

// TestReloadOnANewSegmentIsUndone: the same where the whole role has to stop.
func TestReloadOnANewSegmentIsUndone(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	before := w.until("the role is full", full)
	bad := changed(c, func(rc *RoleConfig) {
		rc.Tick = 60 * time.Millisecond
		rc.Env[playWorker] = "exit"
	})
	if _, err := w.sup.Reload(context.Background(), bad); err == nil || !strings.Contains(err.Error(), "runs on with the settings before") {
		t.Fatalf("the reload: %v", err)
	}
	after := w.until("the role is full", full)
	if after.Token <= before.Token || after.ReloadFailed == "" {
		t.Errorf("token %s after %s; status says %q", after.Token, before.Token, after.ReloadFailed)
	}
	if plan, err := w.sup.Plan(c); err != nil || len(plan.Changes) != 0 {
		t.Errorf("a plan for the config before: %+v, %v", plan, err)
	}
}

// TestBrokenRoleIsNotTakenBack: where nobody is ready with the settings at work,
// there is nothing to go back to.
func TestBrokenRoleIsNotTakenBack(t *testing.T) {
	c := newConfig(t, "exit")
	w := start(t, c)
	w.until("a worker has failed", func(r RoleStatus) bool { return r.Workers[0].LastExit != nil })
	bad := changed(c, func(rc *RoleConfig) { rc.Env["TEST_NOTHING"] = "1" })
	done, err := w.sup.Reload(context.Background(), bad)
	if err == nil || done.Roles[0].Reverted {
		t.Errorf("a reload that mends nothing: %+v, %v", done.Roles, err)
	}
	good := changed(c, func(rc *RoleConfig) { rc.Env[playWorker] = "good" })
	if _, err := w.sup.Reload(context.Background(), good); err != nil {
		t.Errorf("a reload that mends it: %v", err)
	}
	w.until("the role is full", full)
}

// TestRollingWithoutALeader: where nobody leads by itself a rolling restart is
// refused at once, and a change of the number goes on beside the pause.
func TestRollingWithoutALeader(t *testing.T) {
	ctx := context.Background()
	c := newConfig(t, "good")
	w := start(t, c)
	before := w.until("the role is full", full)
	if _, err := w.sup.Pause(ctx, "kv", 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.sup.Signal(ctx, "kv/leader", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lost := w.until("nobody leads", func(r RoleStatus) bool {
		return r.State == RolePaused && slices.ContainsFunc(r.Workers, func(ws WorkerStatus) bool { return ws.State == WorkerBackoff })
	})
	if _, err := w.sup.RestartRolling(ctx, "kv"); !errors.Is(err, ErrNoLeader) || !strings.Contains(err.Error(), "standbyd resume kv") {
		t.Errorf("a rolling restart of a paused role: %v", err)
	}
	for _, ws := range lost.Workers {
		if ws.Name != before.Leader && w.sup.Snapshot().Roles[0].pidOf(ws.Name) != ws.PID {
			t.Errorf("%s was restarted by what was refused", ws.Name)
		}
	}
	if done, err := w.sup.Scale(ctx, "kv", len(before.Workers)+1); err != nil || len(done.Started) != 1 {
		t.Errorf("one more: %+v, %v", done, err)
	}
	if names, err := w.sup.Resume(ctx, "kv"); err != nil || len(names) != 1 {
		t.Errorf("resume: %v, %v", names, err)
	}
	if names, err := w.sup.Resume(ctx, ""); err != nil || len(names) != 0 {
		t.Errorf("resume of what is not paused: %v, %v", names, err)
	}
	if r := w.until("the role is full", full); len(r.Workers) != len(before.Workers)+1 {
		t.Errorf("%d workers", len(r.Workers))
	}
	if _, err := w.sup.RestartRolling(ctx, "kv"); err != nil {
		t.Errorf("a rolling restart afterwards: %v", err)
	}
	if _, err := w.sup.Stop(ctx, "kv"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.sup.RestartRolling(ctx, "kv"); !errors.Is(err, ErrNoLeader) || !strings.Contains(err.Error(), "standbyd start kv") {
		t.Errorf("a rolling restart of a stopped role: %v", err)
	}
	if r := w.until("all are stopped", func(r RoleStatus) bool { return r.State == RoleStopped }); !r.Workers[0].StaysStopped || r.Closing {
		t.Errorf("%+v", r)
	}
}

// TestRollingOfALonePausedLeader is refused: nobody would lead afterwards.
func TestRollingOfALonePausedLeader(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].Workers = 1
	w := start(t, c)
	before := w.until("the role is full", full)
	if _, err := w.sup.Pause(context.Background(), "kv", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.sup.RestartRolling(context.Background(), "kv"); err == nil || !strings.Contains(err.Error(), "standbyd resume kv") {
		t.Errorf("got %v", err)
	}
	if r := w.until("somebody leads", led); r.LeaderPID != before.LeaderPID {
		t.Errorf("pid %d leads, it was %d", r.LeaderPID, before.LeaderPID)
	}
}

// TestRestartsThatWereAskedForAreNotCounted: the number is one of accidents.
func TestRestartsThatWereAskedForAreNotCounted(t *testing.T) {
	ctx := context.Background()
	c := newConfig(t, "good")
	w := start(t, c)
	before := w.until("the role is full", full)
	if _, err := w.sup.RestartRolling(ctx, "kv"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.sup.Restart(ctx, "kv/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.sup.Reload(ctx, changed(c, func(rc *RoleConfig) { rc.Env["TEST_NOTHING"] = "1" })); err != nil {
		t.Fatal(err)
	}
	r := w.until("the role is full", full)
	for _, ws := range r.Workers {
		if ws.Restarts != 0 || ws.PID == before.pidOf(ws.Name) {
			t.Errorf("%+v", ws)
		}
	}
	syscall.Kill(r.LeaderPID, syscall.SIGKILL)
	w.until("the killed one is back and counted", func(now RoleStatus) bool {
		n := 0
		for _, ws := range now.Workers {
			n += ws.Restarts
			if ws.Restarts != 0 && ws.Name != r.Leader {
				t.Fatalf("%+v was killed, and counted is %+v", r.Leader, ws)
			}
		}
		return full(now) && n == 1
	})
}

// TestAwaitedPluginIsNamed: while a role waits for a plugin that does not come
// up, its status says for which one; after the end nothing of it is left.
func TestAwaitedPluginIsNamed(t *testing.T) {
	c := newConfig(t, "good")
	release := make(chan struct{})
	h := &recorder{status: HookStatus{State: "starting"}}
	h.on = func(moment string, _ role.Transition) error {
		if moment == "start" {
			<-release
		}
		return nil
	}
	c.Roles[0].HookTimeout = limit
	c.Roles[0].Hooks = []NamedHooks{{Name: "silent", Hooks: h}}
	w := start(t, c)
	w.until("the plugin is named", func(r RoleStatus) bool {
		return strings.HasPrefix(r.Why, "waits since ") && strings.Contains(r.Why, "for the plugin silent to start")
	})
	close(release)
	w.until("the role is full", full)
	w.shutdown()
	if left, err := os.ReadDir(c.RuntimeDir); err != nil || len(left) != 0 {
		t.Errorf("left in the runtime folder: %v, %v", left, err)
	}
}

// TestChangeGoesOnWithoutItsCaller: whoever asks for a change may leave before
// its end. What a plan compares with is what the role came to, also where the
// change was undone in the end.
func TestChangeGoesOnWithoutItsCaller(t *testing.T) {
	gate, other := filepath.Join(t.TempDir(), "gate"), filepath.Join(t.TempDir(), "other")
	let := func(path, how string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".new", []byte(how), 0o644), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	c := newConfig(t, "gated")
	c.Roles[0].Env["TEST_GATE"] = gate
	let(gate, "work")
	w := start(t, c)
	before := w.until("the role is full", full)
	change := func(do func(context.Context) error, seen string, test func(RoleStatus) bool) {
		t.Helper()
		ctx, leave := context.WithCancel(context.Background())
		left := make(chan error, 1)
		go func() { left <- do(ctx) }()
		w.until(seen, test)
		leave()
		if err := <-left; err == nil || !strings.Contains(err.Error(), "it goes on: context canceled") {
			t.Fatalf("the caller leaves with %v", err)
		}
	}
	changes := func(c Config) int {
		t.Helper()
		plan, err := w.sup.Plan(c)
		if err != nil {
			t.Fatal(err)
		}
		return len(plan.Changes)
	}

	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	change(func(ctx context.Context) error {
		_, err := w.sup.Scale(ctx, "kv", len(before.Workers)+1)
		return err
	}, "one more begins", func(r RoleStatus) bool { return len(r.Workers) > len(before.Workers) })
	if n := changes(c); n != 1 {
		t.Errorf("%d changes to the config before", n)
	}
	let(gate, "work")
	w.until("there is one more", func(r RoleStatus) bool { return full(r) && len(r.Workers) > len(before.Workers) })
	if done, err := w.sup.Reload(context.Background(), c); err != nil || len(done.Plan.Changes) != 1 || !done.Plan.Changes[0].Scaled {
		t.Errorf("a reload of the config before: %+v, %v", done, err)
	}
	w.until("there is none more", func(r RoleStatus) bool { return full(r) && len(r.Workers) == len(before.Workers) })

	next := changed(c, func(rc *RoleConfig) { rc.Env["TEST_GATE"] = other })
	change(func(ctx context.Context) error {
		_, err := w.sup.Reload(ctx, next)
		return err
	}, "one is started anew", func(r RoleStatus) bool { return !full(r) })
	if n := changes(next); n != 0 {
		t.Errorf("%d changes to what is under way", n)
	}
	let(other, "fail")
	w.until("it is undone", func(r RoleStatus) bool { return full(r) && r.ReloadFailed != "" })
	if n := changes(c); n != 0 {
		t.Errorf("%d changes to what it has come back to", n)
	}
	let(other, "work")
	if done, err := w.sup.Reload(context.Background(), next); err != nil || len(done.Plan.Changes) != 1 {
		t.Errorf("the same once more: %+v, %v", done, err)
	}
}

// TestRemovedRoleEndsWithoutItsCaller: it is forgotten when it has stopped, and
// another one of its name begins only then.
func TestRemovedRoleEndsWithoutItsCaller(t *testing.T) {
	c := newConfig(t, "good")
	leaving := c.Roles[0].copy()
	leaving.Name, leaving.Env[playWorker] = "leaving", "sticky"
	leaving.StopTimeout = time.Hour
	with := c
	with.Roles = append(slices.Clone(c.Roles), leaving)
	w := start(t, with)
	w.until("the role is full", full)
	last := w.untilRole(1, "the other is full", full)
	ctx, leave := context.WithCancel(context.Background())
	leave()
	if _, err := w.sup.Reload(ctx, c); err == nil || !strings.Contains(err.Error(), "its stop goes on") {
		t.Fatalf("the reload that leaves: %v", err)
	}
	if plan, err := w.sup.Plan(c); err != nil || len(plan.Changes) != 0 {
		t.Errorf("a plan without it: %+v, %v", plan, err)
	}
	if _, err := w.sup.Reload(context.Background(), with); err == nil || !strings.Contains(err.Error(), "the role that had this name still stops") {
		t.Errorf("a reload that has it again: %v", err)
	}
	syscall.Kill(last.LeaderPID, syscall.SIGKILL)
	eventually.Shows(t, "only one role is left", func() (bool, string) {
		roles := w.sup.Snapshot().Roles
		return len(roles) == 1, fmt.Sprintf("%+v", roles)
	})
	if _, err := w.sup.Reload(context.Background(), with); err != nil {
		t.Errorf("a reload that has it again, later: %v", err)
	}
	if again := w.untilRole(1, "it is full again", full); again.Token <= last.Token {
		t.Errorf("token %s after %s", again.Token, last.Token)
	}
	syscall.Kill(w.sup.Snapshot().Roles[1].LeaderPID, syscall.SIGKILL)
}
