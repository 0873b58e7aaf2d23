package api

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/standbyd/standbyd/supervisor"
	"github.com/standbyd/standbyd/test/shortdir"
)

// TestNobodyWaitsForAStoppedDaemon: its socket takes connections, and that is
// all. Also what may take its time ends, and was not sent.
func TestNobodyWaitsForAStoppedDaemon(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortdir.New(t), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, ctx := NewClient(path), context.Background()
	var all sync.WaitGroup
	for what, call := range map[string]func() error{
		"shutdown": func() error { return c.Shutdown(ctx, func(int) {}) },
		"drill":    func() error { return c.Drill(ctx, DrillRequest{Role: "kv"}, DrillProgress{}) },
		"events":   func() error { return c.Events(ctx, EventsOptions{}, func(supervisor.Event) error { return nil }) },
		"failover": func() error { _, err := c.Failover(ctx, ChangeRequest{Role: "kv"}); return err },
		"scale":    func() error { _, err := c.Scale(ctx, "kv", 3); return err },
		"restart":  func() error { _, err := c.RestartRolling(ctx, "kv"); return err },
	} {
		all.Go(func() {
			if err := call(); !errors.Is(err, ErrNoAnswer) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	all.Wait()
}
