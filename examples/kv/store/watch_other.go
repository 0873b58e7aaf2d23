//go:build !linux

package store

import "time"

type watcher struct {
	changed  chan struct{}
	interval time.Duration
}

func watch(string) *watcher { return &watcher{interval: pollInterval} }

func (w *watcher) close() {}
