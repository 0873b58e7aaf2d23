package api

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/supervisor"
)

// TestChangeRoundTrips: what is asked for arrives, and so does the answer, or
// the refusal with its kind.
func TestChangeRoundTrips(t *testing.T) {
	p := &puppet{}
	c, _, _ := serve(t, p)
	ctx := t.Context()
	if r, err := c.Switchover(ctx, ChangeRequest{"kv", "kv-2"}); err != nil || r.Role != "kv" || r.To != "kv-2" || r.Reason != role.ReasonSwitchover {
		t.Errorf("switchover: %+v, %v", r, err)
	}
	if r, err := c.Failover(ctx, ChangeRequest{"kv", ""}); err != nil || r.Role != "kv" || r.To != "" || r.Reason != role.ReasonForced {
		t.Errorf("failover: %+v, %v", r, err)
	}
	if r, err := c.Candidates(ctx, "kv", "kv-1"); err != nil || r.Role != "kv" || r.To != "kv-1" {
		t.Errorf("candidates: %+v, %v", r, err)
	}
	if s, err := c.Pause(ctx, PauseRequest{"kv", 1500}); err != nil || len(s) != 1 || s[0].Role != "kv" || !s[0].Until.Equal(time.Unix(1, 500e6)) {
		t.Errorf("pause: %+v, %v", s, err)
	}
	if _, err := c.Pause(ctx, PauseRequest{"kv", -1}); !errors.Is(err, ErrBadRequest) {
		t.Errorf("a pause of less than nothing: %v", err)
	}
	if names, err := c.Resume(ctx, "kv"); err != nil || len(names) != 1 || names[0] != "kv" {
		t.Errorf("resume: %v, %v", names, err)
	}
	for _, kind := range []error{supervisor.ErrNoStandby, supervisor.ErrTimedOut, supervisor.ErrBusy, supervisor.ErrNoWorker} {
		p.err = fmt.Errorf("because: %w", kind)
		_, err := c.Switchover(ctx, ChangeRequest{Role: "kv"})
		if !errors.Is(err, kind) || err.Error() != p.err.Error() {
			t.Errorf("%v came as %v", p.err, err)
		}
		if _, err := c.Resume(ctx, "kv"); !errors.Is(err, kind) {
			t.Errorf("%v came as %v", p.err, err)
		}
	}
}
