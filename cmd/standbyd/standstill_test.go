package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/programs"
)

func (d *daemon) role(name string) supervisor.RoleStatus {
	d.t.Helper()
	var s supervisor.Snapshot
	if err := json.Unmarshal([]byte(d.must("status", name, "-o", "json")), &s); err != nil {
		d.t.Fatal(err)
	}
	return s.Roles[0]
}

// TestPausedRoleKeepsItsLeader: what would leave the role without one is refused
// or, by force, told for what it is.
func TestPausedRoleKeepsItsLeader(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := start(t, fmt.Sprintf("workers = 2\n[role.lone]\ncommand = [%q]\nworkers = 1\n", exe))
	d.must("wait", "kv", "--for", "ready", "-T", "50s")
	d.must("wait", "lone", "-T", "50s")
	if code, _, stderr := d.call("restart", "lone", "--rolling"); code != exitDone || !strings.HasPrefix(stderr, "standbyd: warning: lone has one worker: nobody leads while it is restarted") {
		t.Errorf("a rolling restart of one: exit %d, %s", code, stderr)
	}
	d.must("pause", "kv")
	before := d.role("kv")
	for _, args := range []string{"drill kv", "restart kv/leader", "restart kv", "stop kv/leader", "stop --no-wait " + before.Leader} {
		code, stdout, stderr := d.call(strings.Fields(args)...)
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, "nobody would take over") || !strings.Contains(stderr, "standbyd resume kv") {
			t.Errorf("%s: exit %d, %s%s", args, code, stdout, stderr)
		}
	}
	if after := d.role("kv"); after.LeaderPID != before.LeaderPID || after.Token != before.Token {
		t.Errorf("the leader is %+v, it was %+v", after, before)
	}
	code, _, stderr := d.call("drill", "kv", "--force", "--count", "3")
	if code != exitFailed || !strings.HasPrefix(stderr, "standbyd: warning: kv: paused: ") || !strings.Contains(stderr, "nobody took over: the role is paused") || !strings.Contains(stderr, "`standbyd failover kv`") {
		t.Errorf("a forced drill: exit %d, %s", code, stderr)
	}
	if now := d.role("kv"); now.State != supervisor.RolePaused || now.Leader != "" {
		t.Errorf("after a forced drill: %+v", now)
	}
	d.must("failover", "kv")
	d.must("resume", "kv")
	d.must("wait", "kv", "--for", "ready", "-T", "50s")

	// A standby that is stopped need not be killed to end.
	now := d.role("kv")
	for _, w := range now.Workers {
		if w.Name == now.Leader {
			continue
		}
		d.must("signal", w.Name, "STOP")
		d.must("stop", w.Name)
		for _, w := range d.role("kv").Workers {
			if w.Name != now.Leader && (w.LastExit == nil || w.LastExit.Signal == "SIGKILL") {
				t.Errorf("a stopped standby: %+v", w.LastExit)
			}
		}
	}
}

// TestRefusedChangeTellsNothingOfAnother: what the one under way does is told by
// whoever asked for that.
func TestRefusedChangeTellsNothingOfAnother(t *testing.T) {
	d := start(t, "workers = 2\n")
	d.must("wait", "kv", "--for", "ready", "-T", "50s")
	a := &app{configFile: d.file}
	client, err := a.client()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, refused := range []error{nil, supervisor.ErrBusy} {
		told := &programs.Output{}
		a.stderr = told
		began := time.Now()
		err := a.narrate(ctx, client, func(supervisor.Event) bool { return true }, func() error {
			if _, err := client.Switchover(ctx, api.ChangeRequest{Role: "kv"}); err != nil {
				t.Fatal(err)
			}
			return refused
		})
		quick, is := time.Since(began) < refusedWithin, strings.Contains(told.String(), "was asked for")
		if err != refused || refused == nil && !is || refused != nil && is && quick {
			t.Errorf("%v, told:\n%s", err, told.String())
		}
		d.must("wait", "kv", "--for", "ready", "-T", "50s")
	}
}
