//go:build !linux

package proc

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Self is the identity of the calling process. Start and namespace are not
// known on this system.
func Self() (Identity, error) { return Identity{PID: os.Getpid(), Boot: 1}, nil }

// Of is the identity of the process that has pid now; ErrGone if there is none.
func Of(pid int) (Identity, error) {
	if absent(pid) {
		return Identity{}, fmt.Errorf("identify pid %d: %w", pid, ErrGone)
	}
	return Identity{PID: pid, Boot: 1}, nil
}

// Judge knows one proof on this system: that no process has the pid.
func Judge(id Identity) Verdict {
	me, _ := Self()
	if v, decided := id.foreign(me); decided {
		return v
	}
	if id.PID > 0 && absent(id.PID) {
		return Gone
	}
	return Alive
}

// pollEvery is how often a Handle looks whether its process exists, on a
// system that does not tell.
const pollEvery = 5 * time.Millisecond

// Handle watches one pid by polling.
type Handle struct {
	id   Identity
	done chan struct{}
	stop chan struct{}
	once sync.Once
}

// OpenHandle takes hold of id; ErrGone if nobody has its pid.
func OpenHandle(id Identity) (*Handle, error) {
	if Judge(id) == Gone {
		return nil, fmt.Errorf("take hold of %v: %w", id, ErrGone)
	}
	h := &Handle{id: id, done: make(chan struct{}), stop: make(chan struct{})}
	go h.watch()
	return h, nil
}

func (h *Handle) watch() {
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-t.C:
			if Judge(h.id) == Gone {
				close(h.done)
				return
			}
		}
	}
}

// Identity is the one that the handle was opened for.
func (h *Handle) Identity() Identity { return h.id }

// Done is closed when nobody has the pid any more.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Signal sends sig to whoever has the pid.
func (h *Handle) Signal(sig syscall.Signal) error {
	p, err := os.FindProcess(h.id.PID)
	if err == nil {
		err = p.Signal(sig)
		p.Release()
	}
	if err != nil {
		return fmt.Errorf("send %v to %v: %w", sig, h.id, err)
	}
	return nil
}

// Judge is like the function Judge.
func (h *Handle) Judge() Verdict { return Judge(h.id) }

// Gone reports whether Judge would say Gone.
func (h *Handle) Gone() bool { return h.Judge() == Gone }

// FreeMemory does nothing on this system.
func (h *Handle) FreeMemory() {}

// Pause blocks until the process is seen to be gone or d has passed.
func (h *Handle) Pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-h.done:
	case <-t.C:
	}
}

// Pause blocks for d.
func Pause(d time.Duration) { time.Sleep(d) }

// Close lets go. A second Close does nothing.
func (h *Handle) Close() error {
	h.once.Do(func() { close(h.stop) })
	return nil
}

// ThreadEnded is false: it cannot be told here.
func ThreadEnded(pid, tid int) bool { return false }
