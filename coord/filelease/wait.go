package filelease

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

const (
	// After something happened, the lease may be free only a moment later: a
	// dying process closes its files before it gives up their locks.
	firstLook = time.Millisecond
	lastLook  = 128 * time.Millisecond
	// Without news: nothing that matters should be missed, but what is missed
	// must not keep anybody waiting for ever.
	lookWithNews    = 10 * time.Second
	lookWithoutNews = 200 * time.Millisecond
	// A holder that will expire is looked at a little later than that.
	lateBy = time.Millisecond
)

// Wait is Claim that waits until it gets the lease, or ctx ends; then the error
// wraps the last *HeldError. On Linux it sleeps until the holder releases or
// dies, or its time is over; elsewhere, and on network file systems, it looks
// five times a second. Those who wait have no order.
func (s *Store) Wait(ctx context.Context, key string, c Claimant) (*Lease, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	news := s.listen(key)
	defer news.close()
	watching := newWatching()
	defer watching.close()
	pause := firstLook
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l, err := s.Claim(ctx, key, c)
		var held *HeldError
		if !errors.As(err, &held) {
			return l, err
		}
		watching.follow(held.watch)
		wait := lookWithoutNews
		if news.changed != nil {
			wait = lookWithNews
		}
		if pause <= lastLook {
			wait = min(wait, pause)
			pause *= 2
		}
		if held.again > 0 {
			wait = min(wait, held.again+lateBy)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return nil, &waitError{context.Cause(ctx), held}
		case <-timer.C:
		case <-news.changed:
			pause = firstLook
		case <-watching.ended:
			pause = firstLook
		}
	}
}

type waitError struct {
	cause error
	held  *HeldError
}

func (e *waitError) Error() string   { return "wait ended: " + e.cause.Error() + ": " + e.held.Error() }
func (e *waitError) Unwrap() []error { return []error{e.cause, e.held} }

// news tells that the key's files changed in a way that may free the lease.
type news struct {
	changed <-chan struct{} // nil: the system does not tell
	file    *os.File
}

func (n news) close() {
	if n.file != nil {
		n.file.Close()
	}
}

// watching waits for the end of processes.
type watching struct {
	ended   chan struct{}
	handles map[proc.Identity]*proc.Handle
	stop    chan struct{}
}

func newWatching() *watching {
	return &watching{ended: make(chan struct{}, 1), handles: make(map[proc.Identity]*proc.Handle), stop: make(chan struct{})}
}

// follow watches these processes, and no others any more.
func (w *watching) follow(all []watched) {
	wanted := make(map[proc.Identity]bool)
	for _, p := range all {
		wanted[p.id] = true
		if w.handles[p.id] != nil {
			continue
		}
		h, err := proc.OpenHandle(p.id)
		if err != nil {
			continue // dead already, or not to be seen: time will tell
		}
		w.handles[p.id] = h
		go func() {
			select {
			case <-h.Done():
				signal(w.ended)
			case <-w.stop:
			}
		}()
	}
	for id, h := range w.handles {
		if !wanted[id] {
			h.Close()
			delete(w.handles, id)
		}
	}
}

func (w *watching) close() {
	w.follow(nil)
	close(w.stop)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
