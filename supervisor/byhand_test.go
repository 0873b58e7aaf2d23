package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func TestStopAndStartByHand(t *testing.T) {
	c := newConfig(t, "good")
	w := start(t, c)
	r := w.until("it is full", full)
	ctx := patient(t)
	standby := slices.IndexFunc(r.Workers, func(w WorkerStatus) bool { return w.Name != r.Leader })
	name := r.Workers[standby].Name
	got, err := w.sup.Stop(ctx, name)
	if err != nil || len(got) != 1 || got[0].PID != 0 || got[0].State != WorkerStopped || !strings.Contains(got[0].Why, "standbyd start "+name) {
		t.Fatalf("stop: %+v, %v", got, err)
	}
	if got, err = w.sup.Start(ctx, name); err != nil || !got[0].Ready || got[0].PID == r.Workers[standby].PID {
		t.Fatalf("start: %+v, %v", got, err)
	}
	if got, err = w.sup.Restart(ctx, "kv/leader"); err != nil || got[0].Name != r.Leader || got[0].PID == r.LeaderPID || !got[0].Ready {
		t.Fatalf("restart of the leader: %+v, %v", got, err)
	}
	w.until("it is full again", full)
	before := w.sup.Snapshot().Roles[0]
	if got, err = w.sup.Stop(ctx, "kv"); err != nil || len(got) != 3 {
		t.Fatalf("stop of the role: %+v, %v", got, err)
	}
	after := w.sup.Snapshot().Roles[0]
	if after.State != RoleStopped || after.Term != before.Term {
		t.Errorf("state %s, term %d: the leader goes last, so nobody else led (%d)", after.State, after.Term, before.Term)
	}
	if got, err = w.sup.Start(ctx, "kv"); err != nil || len(got) != 3 {
		t.Fatalf("start of the role: %+v, %v", got, err)
	}
	w.until("somebody leads", led)
	if _, err = w.sup.Start(ctx, "nobody"); !errors.Is(err, ErrNoRole) {
		t.Errorf("no such role: %v", err)
	}
	if _, err = w.sup.Stop(ctx, "kv/7"); !errors.Is(err, ErrNoWorker) {
		t.Errorf("no such worker: %v", err)
	}
	w.shutdown()
	w.noProcesses()
}

// The program is gone: restart says so, and once it is back a start works at
// once, also of a worker that has failed for good.
func TestStartAfterRepair(t *testing.T) {
	c := newConfig(t, "good")
	r := &c.Roles[0]
	exe := r.Command[0]
	link := filepath.Join(r.Dir, "worker")
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	r.Command, r.Workers, r.Burst, r.CoolDown, r.BurstPer = []string{link}, 1, 3, time.Hour, time.Hour
	w := start(t, c)
	w.until("it leads", led)
	os.Remove(link)
	ctx := patient(t)
	if _, err := w.sup.Restart(ctx, "kv/0"); err == nil || !strings.HasSuffix(err.Error(), "start "+link+": no such file or directory") {
		t.Fatalf("restart without a program: %v", err)
	}
	w.until("it has failed", func(r RoleStatus) bool { return r.Workers[0].State == WorkerFailed })
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	if got, err := w.sup.Start(ctx, "kv/0"); err != nil || !got[0].Ready {
		t.Fatalf("start after the repair: %+v, %v", got, err)
	}
	w.shutdown()
}

// A stop that takes too long names who is still there, in which state, and
// after which signal; what it began goes on.
func TestStopNamesWhoDoesNotEnd(t *testing.T) {
	c := newConfig(t, "stubborn")
	c.Roles[0].Workers, c.Roles[0].StopTimeout = 1, time.Hour
	w := start(t, c)
	r := w.until("it leads", led)
	ctx, cancel := context.WithCancel(patient(t))
	failed := make(chan error, 1)
	go func() { _, err := w.sup.Stop(ctx, "kv"); failed <- err }()
	w.until("it is told to stop", func(r RoleStatus) bool { return r.Workers[0].LastSignal == "TERM" })
	cancel()
	err := <-failed
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"kv-0", "stopping", "SIGTERM", "pid"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	if now := w.sup.Snapshot().Roles[0].Workers[0]; now.PID != r.LeaderPID {
		t.Errorf("%+v", now)
	}
	w.sup.Kill()
}
