package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// compactor bounds the journals before the current one. A failure costs
// nothing but disk space, and is tried again.
func (w *Writer) compactor() {
	const retry = 10 * time.Second
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-w.stop:
		case <-w.broken:
		case <-ctx.Done():
		}
		cancel()
	}()
	var again <-chan time.Time
	for {
		select {
		case <-w.kick:
		case <-again:
		case <-ctx.Done():
			return
		}
		again = nil
		w.tidy()
		name, err := w.compact(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.s.opts.Log("%v; next attempt in %s", err, retry)
			again = time.After(retry)
		} else if name != "" {
			w.s.opts.Log("wrote %s", name)
		}
		w.mu.Lock()
		w.lapse = err
		w.mu.Unlock()
	}
}

// tidy removes the unfinished files of earlier leaders. One that is still at
// it fails to publish, and could not have made its file count anyway.
func (w *Writer) tidy() {
	found, err := list(w.s.dir)
	if err != nil {
		return
	}
	for _, name := range found.temps {
		if token, ok := tempToken(name); ok && token < w.l.Token() {
			os.Remove(filepath.Join(w.s.dir, name))
		}
	}
}

// compact replaces the older journals if there are too many.
func (w *Writer) compact(ctx context.Context) (name string, err error) {
	found, err := list(w.s.dir)
	if err != nil {
		return "", err
	}
	if n, size := found.older(w.s.dir); n <= w.s.opts.KeepJournals && size <= w.s.opts.KeepBytes {
		return "", nil
	}
	return w.replace(ctx)
}

// replace writes a snapshot and removes what it stands for.
//
// It is taken at a confirmed place of this leader's own journal: every later
// leader counts that journal at least as far, so the snapshot stays good, and
// what lies before it unneeded, even if this leadership is over by now.
func (w *Writer) replace(ctx context.Context) (name string, err error) {
	state, at := w.s.r.freeze()
	h := snapshotHeader{Position: at, Role: w.s.opts.Role, Token: w.l.Token(), At: time.Now().UTC()}
	if err := writeSnapshot(ctx, w.s.opts.disk, w.s.dir, h, state); err != nil {
		return "", err
	}
	found, err := list(w.s.dir)
	if err != nil {
		return "", err
	}
	for _, id := range found.journals {
		if id.Compare(at.ID) < 0 {
			err = errors.Join(err, os.Remove(filepath.Join(w.s.dir, id.String())))
		}
	}
	for _, s := range found.snapshots {
		if s.compare(place{at.ID, at.Offset}) < 0 {
			err = errors.Join(err, os.Remove(filepath.Join(w.s.dir, snapshotName(Position{ID: s.id, Offset: s.offset}))))
		}
	}
	return snapshotName(at), err
}
