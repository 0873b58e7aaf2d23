package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/standbyd/standbyd/supervisor"
)

func TestWorkerBlock(t *testing.T) {
	code := 3
	var b bytes.Buffer
	workerBlock(&b, supervisor.WorkerStatus{Name: "kv-1", State: supervisor.WorkerBackoff, Restarts: 2, Why: "next start in 1s", Status: "warm\nnow",
		Health: &supervisor.HealthStatus{Failures: 4, Error: "503"}},
		[]supervisor.Death{{At: time.Now(), PID: 77, Cause: "exit status 3", Code: &code, UptimeMS: 1500, Leader: true, Lines: []string{"out of paper"}}}, time.Now(), painter(&b))
	for _, part := range []string{"kv-1", "backoff", "next start in 1s", "it says: warm now", "4 probes in a row failed: 503", "pid 77, after 1.5s, leading: exit status 3", "out of paper"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is missing in\n%s", part, b.String())
		}
	}
	b.Reset()
	if workerBlock(&b, supervisor.WorkerStatus{Name: "kv-0"}, nil, time.Now(), painter(&b)); !strings.Contains(b.String(), "no deaths") {
		t.Errorf("%s", b.String())
	}
}
