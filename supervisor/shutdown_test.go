package supervisor

import (
	"errors"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

func init() {
	workers["unmoved"] = func() int {
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
		return 0
	}
}

// What is asked for during a shutdown is refused for the shutdown, also a start
// that waits for a worker which the shutdown ends.
func TestStartDuringShutdown(t *testing.T) {
	c := newConfig(t, "unmoved")
	c.Roles[0].Workers, c.Roles[0].StopTimeout, c.Roles[0].StartTimeout = 2, limit, limit
	w := start(t, c)
	w.until("the workers run", func(r RoleStatus) bool { return r.Workers[0].PID != 0 && r.Workers[1].PID != 0 })
	waits := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		close(begun)
		_, err := w.sup.Start(t.Context(), "kv")
		waits <- err
	}()
	<-begun
	w.stop()
	w.until("it closes", func(r RoleStatus) bool { return r.Closing })
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "is being shut down") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := w.sup.Start(t.Context(), "kv/1")
	refused("start", err)
	_, err = w.sup.Scale(t.Context(), "kv", 3)
	refused("scale", err)
	_, err = w.sup.Switchover(t.Context(), "kv", "")
	refused("switchover", err)
	w.sup.Kill()
	select {
	case err := <-waits:
		refused("the start that waited", err)
	case <-time.After(limit):
		t.Error("the start that waited goes on")
	}
}
