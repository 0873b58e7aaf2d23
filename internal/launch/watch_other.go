//go:build unix && !linux

package launch

import (
	"sync"
	"syscall"

	"github.com/standbyd/standbyd/internal/proc"
)

// watch waits for a child in a goroutine that also reaps it, and for a
// stranger through proc's handle. The promise is weaker than on Linux: between
// the end of a child and Reap its number is free, unless its group has members.
type watch struct {
	done   <-chan struct{}
	handle *proc.Handle // of a stranger; nil for a child

	mu     sync.Mutex
	ended  bool
	status Status
}

func openWatch(pid int, child bool) (*watch, error) {
	w := &watch{}
	if child {
		done := make(chan struct{})
		w.done = done
		go w.waitInThread(pid, done)
		return w, nil
	}
	id, err := proc.Of(pid)
	if err != nil {
		return nil, err
	}
	if w.handle, err = proc.OpenHandle(id); err != nil {
		return nil, err
	}
	w.done = w.handle.Done()
	return w, nil
}

func (w *watch) waitInThread(pid int, done chan<- struct{}) {
	ws, err := wait(pid, 0)
	w.mu.Lock()
	w.ended, w.status = true, Status{Code: -1}
	if err == nil {
		w.status = statusOf(ws)
	}
	w.mu.Unlock()
	close(done)
}

func (w *watch) close() error {
	if w.handle != nil {
		return w.handle.Close()
	}
	return nil
}

func (w *watch) signal(id proc.Identity, sig syscall.Signal) error {
	select {
	case <-w.done:
		return proc.ErrGone
	default:
	}
	return syscall.Kill(id.PID, sig)
}

func (w *watch) killGroup(id proc.Identity, _ bool) error {
	return syscall.Kill(-id.PID, syscall.SIGKILL)
}

func (w *watch) peek(proc.Identity, bool) (Status, bool) {
	select {
	case <-w.done:
	default:
		return Status{}, false
	}
	if w.handle != nil {
		return Status{Code: -1}, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status, w.ended
}

func (w *watch) reap(_ proc.Identity, peeked Status) (Status, error) { return peeked, nil }
