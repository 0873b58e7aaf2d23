//go:build linux

package store

import (
	"os"
	"syscall"
	"time"
)

// watcher tells that something in a folder may have changed. The interval is
// how long to trust its silence.
type watcher struct {
	changed  chan struct{}
	interval time.Duration
	f        *os.File
}

func watch(dir string) *watcher {
	w := &watcher{changed: make(chan struct{}, 1), interval: time.Second}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err == nil {
		_, err = syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE|syscall.IN_MODIFY|syscall.IN_MOVED_TO)
		w.f = os.NewFile(uintptr(fd), "inotify")
	}
	if err != nil {
		// No instances left, or a file system without it: look often instead.
		w.interval = pollInterval
		return w
	}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := w.f.Read(buf); err != nil {
				return
			}
			select {
			case w.changed <- struct{}{}:
			default:
			}
		}
	}()
	return w
}

func (w *watcher) close() {
	if w.f != nil {
		w.f.Close()
	}
}
