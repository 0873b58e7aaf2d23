package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/standbyd/standbyd/internal/api"
	"github.com/standbyd/standbyd/supervisor"
)

// narrate does something that takes its time and meanwhile tells on stderr,
// from the daemon's events, what becomes of the workers concerned. What cannot
// be told stops nothing.
func (a *app) narrate(ctx context.Context, client *api.Client, concerned func(supervisor.Event) bool, do func() error) error {
	last := uint64(0) // the last event that was told, or is older
	known := client.Events(ctx, api.EventsOptions{Last: 1}, func(e supervisor.Event) error {
		last = e.ID
		return nil
	}) == nil
	if !known {
		return do()
	}
	// What happens until it is clear that this is not refused may be another's.
	var mu sync.Mutex
	var held strings.Builder
	out := io.Writer(&held)
	begin := func() {
		mu.Lock()
		defer mu.Unlock()
		io.WriteString(a.stderr, held.String())
		held.Reset()
		out = a.stderr
	}
	accepted := time.AfterFunc(refusedWithin, begin)
	defer accepted.Stop()
	tell := func(e supervisor.Event) error {
		if e.ID <= last {
			return nil
		}
		last = e.ID
		if ofTheWorkers(e) && concerned(e) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "  %s: %s\n", e.Role, sentence(e))
		}
		return nil
	}
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client.Events(following, api.EventsOptions{Last: -1, After: last, Follow: true}, tell)
	}()
	err := do()
	cancel()
	<-ended
	if err != nil && interrupted(ctx) {
		return fmt.Errorf("%w; what was begun goes on in standbyd, and `standbyd status` says what it waits for", errInterrupted)
	}
	if errors.Is(err, supervisor.ErrBusy) {
		return err
	}
	if ctx.Err() == nil { // what was on its way
		client.Events(ctx, api.EventsOptions{Last: -1, After: last}, tell)
	}
	begin()
	return err
}

// refusedWithin is how soon a daemon says that something else is under way.
const refusedWithin = 500 * time.Millisecond

// narrateOf is narrate for one role, and silent with -o json.
func (a *app) narrateOf(ctx context.Context, client *api.Client, f *form, role string, do func() error) error {
	if f.json() {
		return do()
	}
	return a.narrate(ctx, client, func(e supervisor.Event) bool { return e.Role == role }, do)
}

// ofTheWorkers are the events that show how a change of workers goes.
func ofTheWorkers(e supervisor.Event) bool {
	switch e.Type {
	case supervisor.EventWorkerStarted, supervisor.EventWorkerReady, supervisor.EventWorkerExited, supervisor.EventWorkerBackoff,
		supervisor.EventWorkerFailed, supervisor.EventLeaderActive, supervisor.EventChange, supervisor.EventRoleState, supervisor.EventWarning:
		return true
	}
	return false
}
