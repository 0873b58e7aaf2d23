//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestA20_StopHangs: workers that take no notice of SIGTERM do not keep
// standbyd from stopping, ready or not; who they were is said.
func TestA20_StopHangs(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, `[role.kv]
command = [$TW, "-ignore-term"]
workers = 2
stop_timeout = "500ms"
drain_timeout = "400ms"

[role.never]
command = ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
workers = 1
stop_timeout = "500ms"
drain_timeout = "400ms"
`)
	d.must("wait", "kv", "--for", "ready", "-T", "1m")
	var status struct {
		Roles []struct {
			Workers []struct {
				Name string
				PID  int
			}
		}
	}
	if err := json.Unmarshal([]byte(d.must("status", "-o", "json")), &status); err != nil {
		t.Fatal(err)
	}
	d.must("shutdown")
	if code := d.wait(); code != 0 {
		t.Errorf("standbyd ended with %d", code)
	}
	for _, r := range status.Roles {
		for _, w := range r.Workers {
			want := "standby"
			if strings.HasPrefix(w.Name, "never") {
				want = "starting"
			}
			want = fmt.Sprintf("pid %d (%s when it was told to end) did not end in time after SIGTERM: killed", w.PID, want)
			if !strings.Contains(d.output.String(), want) {
				t.Errorf("%s: the log does not say %q", w.Name, want)
			}
		}
	}
}
