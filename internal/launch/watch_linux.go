//go:build linux

package launch

import (
	"encoding/binary"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/proc"
)

// watch is a pidfd of its own description in the runtime's poller. Where the
// kernel has no pidfds file is nil, and a goroutine waits in a thread.
type watch struct {
	done chan struct{}
	file *os.File
	conn syscall.RawConn
	once sync.Once
}

// openWatch begins to watch pid. Only a child, which cannot be reaped behind
// our back, can be watched without a pidfd.
func openWatch(pid int, child bool) (*watch, error) {
	w := &watch{done: make(chan struct{})}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		if !child || !lacking(err) {
			return nil, os.NewSyscallError("pidfd_open", err)
		}
		go w.waitInThread(pid)
		return w, nil
	}
	w.file = os.NewFile(uintptr(fd), "pidfd of "+strconv.Itoa(pid))
	if w.conn, err = w.file.SyscallConn(); err != nil {
		w.file.Close()
		return nil, err
	}
	go w.waitInPoller()
	return w, nil
}

// lacking: an old kernel, or a sandbox that does not allow the call.
func lacking(err error) bool {
	return err == unix.ENOSYS || err == unix.EPERM || err == unix.EINVAL
}

func (w *watch) waitInPoller() {
	err := w.conn.Read(func(fd uintptr) bool { return readable(int(fd)) })
	if err == nil {
		close(w.done)
	}
}

func readable(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}

func (w *watch) waitInThread(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			close(w.done)
			return
		}
	}
}

func (w *watch) close() error {
	var err error
	w.once.Do(func() {
		if w.file != nil {
			err = w.file.Close()
		}
	})
	return err
}

// control runs f on the pidfd; errNoPidfd if there is none.
func (w *watch) control(f func(fd int) error) error {
	if w.conn == nil {
		return errNoPidfd
	}
	var inner error
	if err := w.conn.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

var errNoPidfd = errors.New("no pidfd")

func (w *watch) signal(id proc.Identity, sig syscall.Signal) error {
	err := w.control(func(fd int) error { return unix.PidfdSendSignal(fd, unix.Signal(sig), nil, 0) })
	if err == errNoPidfd || err == unix.ENOSYS {
		return syscall.Kill(id.PID, sig) // a child that is not reaped: the number is its own
	}
	return err
}

// pidfdSignalProcessGroup (Linux 6.9) makes pidfd_send_signal address the
// group that the process leads, also when only others are left in it.
const pidfdSignalProcessGroup = 4

func (w *watch) killGroup(id proc.Identity, own bool) error {
	err := w.control(func(fd int) error {
		return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, pidfdSignalProcessGroup)
	})
	if err != errNoPidfd && err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	if !own {
		if now, err := proc.Of(id.PID); err == nil && now != id {
			return errors.New("its pid belongs to another process now")
		}
	}
	return syscall.Kill(-id.PID, syscall.SIGKILL)
}

// peek tells how the process ended, and false before that. It reaps nothing.
func (w *watch) peek(id proc.Identity, own bool) (Status, bool) {
	if own {
		return peekChild(id.PID)
	}
	return w.peekStranger(id)
}

// reap gives back the number of a child that has ended.
func (w *watch) reap(id proc.Identity, peeked Status) (Status, error) {
	ws, err := wait(id.PID, syscall.WNOHANG)
	if err == syscall.ECHILD {
		return peeked, nil
	}
	return statusOf(ws), err
}

// peekChild asks how a child ended without reaping it.
func peekChild(pid int) (Status, bool) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err == unix.ECHILD {
			return Status{Code: -1}, true // somebody else has reaped it
		}
		if err != nil || info.Signo == 0 {
			return Status{}, false
		}
		break
	}
	const cldExited = 1
	value := childStatus(&info)
	if info.Code == cldExited {
		return Status{Code: value, Known: true}, true
	}
	return Status{Code: -1, Signal: syscall.Signal(value), Known: true}, true
}

// childStatus reads si_status, which the package unix hides in unnamed bytes
// behind si_pid and si_uid.
func childStatus(info *unix.Siginfo) int {
	v := reflect.ValueOf(info).Elem()
	rest := v.Field(v.NumField() - 1)
	var b [4]byte
	for i := range b {
		b[i] = byte(rest.Index(8 + i).Uint())
	}
	return int(int32(binary.NativeEndian.Uint32(b[:])))
}

// peekStranger asks how an adopted process ended: its pidfd knows once it was
// reaped, /proc until then.
func (w *watch) peekStranger(id proc.Identity) (Status, bool) {
	select {
	case <-w.done:
	default:
		if w.control(func(fd int) error {
			if readable(fd) {
				return nil
			}
			return ErrRunning
		}) != nil {
			return Status{}, false
		}
	}
	if s, ok := w.exitInfo(); ok {
		return s, true
	}
	if s, ok := zombieStatus(id); ok {
		return s, true
	}
	// Reaped between the two questions.
	if s, ok := w.exitInfo(); ok {
		return s, true
	}
	return Status{Code: -1}, true
}

func (w *watch) exitInfo() (Status, bool) {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	err := w.control(func(fd int) error { return unix.IoctlPidfdInfo(fd, &info) })
	if err != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return Status{}, false
	}
	return statusOf(syscall.WaitStatus(info.Exit_code)), true
}

// zombieStatus reads the exit code in the last field of /proc/PID/stat.
func zombieStatus(id proc.Identity) (Status, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(id.PID) + "/stat")
	if err != nil {
		return Status{}, false
	}
	if now, err := proc.Of(id.PID); err != nil || now != id {
		return Status{}, false
	}
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const exitCode = 52 - 3 // fields are counted from 1, and the state is the third
	if len(fields) <= exitCode || fields[0] != "Z" {
		return Status{}, false
	}
	n, err := strconv.Atoi(fields[exitCode])
	if err != nil || n == 0 && os.Geteuid() != 0 { // 0 is also shown to who may not know
		return Status{}, false
	}
	return statusOf(syscall.WaitStatus(n)), true
}
