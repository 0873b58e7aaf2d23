//go:build linux

package proc

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Handle is a hold on one process: a pidfd (Linux 5.3) that was opened first
// and verified against the identity afterwards. Its methods are safe for
// concurrent use.
type Handle struct {
	id   Identity
	file *os.File
	conn syscall.RawConn
	done chan struct{}
	once sync.Once
	look sync.Once // of the goroutine behind Done

	mu    sync.Mutex
	tasks *taskView // nil: not to be seen, or closed
}

// OpenHandle takes hold of id. The error is ErrGone if it is proven dead, and
// another one if it cannot be seen from here.
func OpenHandle(id Identity) (*Handle, error) {
	me, err := self()
	if err != nil {
		return nil, err
	}
	if v, decided := id.foreign(me); decided {
		if v == Gone {
			return nil, fmt.Errorf("take hold of %v: %w", id, ErrGone)
		}
		return nil, fmt.Errorf("take hold of %v: it lives in another pid namespace", id)
	}
	fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	if err == unix.ESRCH || err == unix.ENOENT {
		return nil, fmt.Errorf("take hold of %v: %w", id, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("take hold of %v: pidfd_open: %w", id, err)
	}
	// Opened between the pidfd and the look at who has the pid, as that is.
	tasks := openTasks(id.PID)
	if byStart(id) == Gone {
		unix.Close(fd)
		if tasks != nil {
			tasks.close()
		}
		return nil, fmt.Errorf("take hold of %v: its pid belongs to another process now: %w", id, ErrGone)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		if tasks != nil {
			tasks.close()
		}
		return nil, fmt.Errorf("take hold of %v: %w", id, err)
	}
	h := &Handle{id: id, file: f, conn: conn, done: make(chan struct{}), tasks: tasks}
	return h, nil
}

// watch waits in the runtime's poller, without a thread of its own.
func (h *Handle) watch() {
	err := h.conn.Read(func(fd uintptr) bool { return readable(int(fd)) })
	if err == nil {
		close(h.done)
	}
}

// Identity is the one that the handle was opened for.
func (h *Handle) Identity() Identity { return h.id }

// Done is closed when the process is gone. It stays open after Close. From the
// first call on a goroutine waits in the runtime's poller.
func (h *Handle) Done() <-chan struct{} {
	h.look.Do(func() { go h.watch() })
	return h.done
}

// Signal sends sig to the process, and to no other one. ErrGone if it is dead.
func (h *Handle) Signal(sig syscall.Signal) error {
	var serr error
	err := h.conn.Control(func(fd uintptr) {
		serr = unix.PidfdSendSignal(int(fd), unix.Signal(sig), nil, 0)
	})
	if err == nil {
		err = serr
	}
	if err == unix.ESRCH {
		err = ErrGone
	}
	if err != nil {
		return fmt.Errorf("send %v to %v: %w", sig, h.id, err)
	}
	return nil
}

// Judge is like the function Judge, and cheaper.
func (h *Handle) Judge() Verdict {
	if v := h.Gone(); v {
		return Gone
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tasks != nil && h.tasks.exiting() {
		return Exiting
	}
	return Alive
}

// Gone reports whether Judge would say Gone, without looking for less.
func (h *Handle) Gone() bool {
	select {
	case <-h.done:
		return true
	default:
	}
	gone := false
	if err := h.conn.Control(func(fd uintptr) { gone = readable(int(fd)) }); err != nil {
		return Judge(h.id) == Gone // closed
	}
	return gone
}

// Pause blocks its thread until the process is gone or d has passed. It keeps
// to d far more exactly than the runtime's timers do.
func (h *Handle) Pause(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	if h.conn.Control(func(fd uintptr) {
		unix.Ppoll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, &ts, nil)
	}) != nil {
		time.Sleep(d) // closed
	}
}

// Close lets go. A second Close does nothing.
func (h *Handle) Close() error {
	var err error
	h.once.Do(func() {
		err = h.file.Close()
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.tasks != nil {
			h.tasks.close()
			h.tasks = nil
		}
	})
	return err
}
