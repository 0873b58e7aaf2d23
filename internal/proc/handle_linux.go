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
	fd   int
	done chan struct{}
	look sync.Once // of the goroutine behind Done

	open   sync.RWMutex // held for reading while fd is used
	closed bool
	file   *os.File // fd as the runtime's poller knows it, nil before Done: most handles are only asked, and who dies should wake nobody for nothing

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
	return &Handle{id: id, fd: fd, done: make(chan struct{}), tasks: tasks}, nil
}

// use calls f with the descriptor; false if it is closed.
func (h *Handle) use(f func(fd int)) bool {
	h.open.RLock()
	defer h.open.RUnlock()
	if !h.closed {
		f(h.fd)
	}
	return !h.closed
}

// watch waits in the runtime's poller, without a thread of its own.
func (h *Handle) watch(conn syscall.RawConn) {
	if conn.Read(func(fd uintptr) bool { return readable(int(fd)) }) == nil {
		close(h.done)
	}
}

// Identity is the one that the handle was opened for.
func (h *Handle) Identity() Identity { return h.id }

// Done is closed when the process is gone. It stays open after Close. From the
// first call on a goroutine waits in the runtime's poller.
func (h *Handle) Done() <-chan struct{} {
	h.look.Do(func() {
		h.use(func(fd int) {
			h.file = os.NewFile(uintptr(fd), "pidfd")
			if conn, err := h.file.SyscallConn(); err == nil {
				go h.watch(conn)
			}
		})
	})
	return h.done
}

// Signal sends sig to the process, and to no other one. ErrGone if it is dead.
func (h *Handle) Signal(sig syscall.Signal) error {
	err := os.ErrClosed
	h.use(func(fd int) { err = unix.PidfdSendSignal(fd, unix.Signal(sig), nil, 0) })
	if err == unix.ESRCH {
		err = ErrGone
	}
	if err != nil {
		return fmt.Errorf("send %v to %v: %w", sig, h.id, err)
	}
	return nil
}

// FreeMemory has another thread help the process to free its memory, if it is
// being killed, and returns at once: where its memory is most of what its end
// takes, it is gone up to twice as soon. The kernel (process_mrelease, Linux
// 5.15) refuses whoever has not been killed as a whole, and frees nothing that
// is shared with others; it comes too late for a process whose last thread has
// let its memory go. So this proves nothing, and is safe to try at a hint.
func (h *Handle) FreeMemory() {
	h.use(func(fd int) {
		// One of its own, since the kernel may wait for the process: a Close is
		// not to wait, too.
		if own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			go func() {
				_ = freeMemory(own)
				unix.Close(own)
			}()
		}
	})
}

// freeMemory is nil if it has freed memory; EINVAL is a process that is not
// dying, ESRCH one that has let go of it.
func freeMemory(pidfd int) error {
	if _, _, errno := unix.Syscall(unix.SYS_PROCESS_MRELEASE, uintptr(pidfd), 0, 0); errno != 0 {
		return errno
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
	if !h.use(func(fd int) { gone = readable(fd) }) {
		return Judge(h.id) == Gone
	}
	return gone
}

// Pause blocks its thread until the process is gone or d has passed. It keeps
// to d far more exactly than the runtime's timers do.
func (h *Handle) Pause(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	if !h.use(func(fd int) { unix.Ppoll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, &ts, nil) }) {
		time.Sleep(d)
	}
}

// Pause blocks its thread for d, far more exactly than the runtime's timers do.
func Pause(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.Ppoll(nil, &ts, nil)
}

// Close lets go, after a Pause that is under way. A second Close does nothing.
func (h *Handle) Close() error {
	h.open.Lock()
	defer h.open.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tasks != nil {
		h.tasks.close()
		h.tasks = nil
	}
	if h.file != nil {
		return h.file.Close() // ends the wait, too
	}
	return unix.Close(h.fd)
}
