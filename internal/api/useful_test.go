package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/supervisor"
)

// shown is a backend with one role to look at.
type shown struct {
	puppet
	role supervisor.RoleStatus
}

func (s *shown) Snapshot() supervisor.Snapshot {
	return supervisor.Snapshot{Roles: []supervisor.RoleStatus{s.role}}
}

// A standby that could not lead is none for a load balancer.
func TestUselessStandbyIsNone(t *testing.T) {
	b := &shown{role: supervisor.RoleStatus{Name: "kv", Leader: "kv-0", Workers: []supervisor.WorkerStatus{
		{Name: "kv-0", State: supervisor.WorkerLeader}, {Name: "kv-1", State: supervisor.WorkerStandby, Why: "has not beaten"}}}}
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		NewServer(b, func() {}, nil).Probes().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	if code, text := ask("/standby?role=kv"); code != http.StatusServiceUnavailable || !strings.Contains(text, "kv-1 has not beaten") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := ask("/standby?role=kv&worker=kv-1"); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", code, text)
	}
	if code, text := ask("/leader?role=kv"); code != http.StatusOK {
		t.Errorf("the leader is asked by its state: %d %s", code, text)
	}
	b.role.Workers[1].Ready = true
	if code, text := ask("/standby?role=kv"); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
}
