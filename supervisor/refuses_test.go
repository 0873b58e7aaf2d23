package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// refusing is a config of workers whose lead fails as soon as it has begun, if
// they were started after set has named them: an index, or "all".
func refusing(t *testing.T) (c Config, set func(which string)) {
	c = newConfig(t, "refuses")
	file := filepath.Join(c.Roles[0].Dir, "refuses")
	c.Roles[0].Env["TEST_REFUSES"] = file
	return c, func(which string) {
		if err := os.WriteFile(file, []byte(which), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSwitchoverToOneThatCannotLead: the change ends with another leader, at
// once, and says what became of it.
func TestSwitchoverToOneThatCannotLead(t *testing.T) {
	for kind, change := range map[string]func(*Supervisor, string) (Record, error){
		"switchover": func(s *Supervisor, to string) (Record, error) { return s.Switchover(t.Context(), "kv", to) },
		"failover":   func(s *Supervisor, to string) (Record, error) { return s.Failover(t.Context(), "kv", to) },
	} {
		t.Run(kind, func(t *testing.T) {
			c, set := refusing(t)
			set("1")
			w := start(t, c)
			before := w.until("the role is full", full)
			if before.Leader == "kv-1" { // it led for a moment at the most
				before = w.until("another leads", func(r RoleStatus) bool { return full(r) && r.Leader != "kv-1" })
			}
			rec, err := change(w.sup, "kv-1")
			if err == nil && rec.To == "kv-1" {
				t.Log("it was seen as the leader before it gave the lease back")
			} else if err == nil || !strings.Contains(err.Error(), "kv-1 led, and gave the lease back at once") || !strings.Contains(err.Error(), rec.To+" leads") || rec.To == "kv-1" {
				t.Errorf("%+v, %v", rec, err)
			}
			w.until("another leads", func(r RoleStatus) bool { return led(r) && r.Leader != "kv-1" && r.Term > before.Term })
			w.until("its log says why", func(RoleStatus) bool {
				b, _ := os.ReadFile(filepath.Join(logsDir(c.StateDir), "kv-1.log"))
				return strings.Contains(string(b), "lead with token") && strings.Contains(string(b), "returned: cannot open the database")
			})
			w.shutdown()
		})
	}
}

// TestRollOntoAProgramThatCannotLead: the last worker that could lead stays.
func TestRollOntoAProgramThatCannotLead(t *testing.T) {
	for kind, kinds := range map[string]string{"its lead returns": "refuses", "its process ends": "dies"} {
		t.Run("restart, "+kind, func(t *testing.T) {
			c, set := refusing(t)
			c.Roles[0].Env[playWorker] = kinds
			w := start(t, c)
			before := w.until("the role is full", full)
			set("all")
			_, err := w.sup.RestartRolling(t.Context(), "kv")
			if err == nil || !strings.Contains(err.Error(), "started with the new settings, led") || !strings.Contains(err.Error(), "as before: "+before.Leader) {
				t.Errorf("the restart: %v", err)
			}
			after := w.until("the one from before leads", func(r RoleStatus) bool { return r.Leader == before.Leader })
			if after.LeaderPID != before.LeaderPID {
				t.Errorf("%s was restarted", before.Leader)
			}
			w.shutdown()
		})
		t.Run("reload, "+kind, func(t *testing.T) {
			c, set := refusing(t)
			c.Roles[0].Env[playWorker] = kinds
			w := start(t, c)
			w.until("the role is full", full)
			set("all")
			bad := changed(c, func(rc *RoleConfig) { rc.Env["TEST_NOTHING"] = "1" })
			_, err := w.sup.Reload(t.Context(), bad)
			if err == nil || !strings.Contains(err.Error(), "started with the new settings, led") {
				t.Errorf("the reload: %v", err)
			}
			w.until("somebody leads", led)
			w.shutdown()
		})
	}
}

// TestReloadOnANewSegmentThatNobodyLeads: all workers were replaced; the change
// is undone like one in which they do not get ready.
func TestReloadOnANewSegmentThatNobodyLeads(t *testing.T) {
	c, set := refusing(t)
	w := start(t, c)
	w.until("the role is full", full)
	set("none")
	bad := changed(c, func(rc *RoleConfig) { rc.Payload, rc.Env[playWorker] = 64, "flash" })
	_, err := w.sup.Reload(t.Context(), bad)
	if err == nil || !strings.Contains(err.Error(), "runs on with the settings before") {
		t.Errorf("the reload: %v", err)
	}
	w.until("the role is led by the workers of before", full)
	w.shutdown()
}

// TestDrillWhoseSuccessorCannotLead ends with that takeover.
func TestDrillWhoseSuccessorCannotLead(t *testing.T) {
	c, set := refusing(t)
	set("1")
	c.Roles[0].RestartDelay = 0
	w := start(t, c)
	for round := range 3 {
		w.until("the role is full", func(r RoleStatus) bool { return full(r) && r.Leader != "kv-1" })
		if _, err := w.sup.Drill(context.Background(), "kv", DrillOptions{Count: 1}, nil); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	w.shutdown()
}

// TestPauseKeepsOnlyTheLastLeadersPlace: who died as leader before, and was
// followed, is started again.
func TestPauseKeepsOnlyTheLastLeadersPlace(t *testing.T) {
	c := newConfig(t, "good")
	c.Roles[0].RestartDelay, c.Roles[0].RestartMaxDelay = 1e9, 1e9
	w := start(t, c)
	first := w.until("the role is full", full)
	syscall.Kill(first.LeaderPID, syscall.SIGKILL)
	second := w.until("another leads", func(r RoleStatus) bool { return led(r) && r.Leader != first.Leader })
	if _, err := w.sup.Pause(t.Context(), "kv", 0); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(second.LeaderPID, syscall.SIGKILL)
	w.until("the first leader's place is filled, the second's is not", func(r RoleStatus) bool {
		return r.State == RolePaused && r.pidOf(first.Leader) != 0 && r.pidOf(second.Leader) == 0
	})
	w.shutdown()
}
