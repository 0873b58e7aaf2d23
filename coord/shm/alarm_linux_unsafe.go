//go:build linux

package shm

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Alarm wakes a goroutine at a moment of CLOCK_MONOTONIC (timerfd, Linux
// 2.6.25), through the runtime's poller, with one context switch. A timer of the
// runtime, and a thread that returns from a system call after its processor was
// given to others, wake the runtime's monitor as well, which looks around for a
// while: three or four switches more (Go 1.26). So does each beginning of a
// system call in an idle process, unless it is a raw one: whoever is woken makes
// no others, where it can be helped.
//
// In return an alarm may come up to 10 ms late in a process whose goroutines
// keep every processor busy: then only the monitor polls. Set and Close may be
// called at any time, Wait by one goroutine at a time.
type Alarm struct {
	file *os.File
	raw  syscall.RawConn
}

// NewAlarm is an alarm that is not set.
func NewAlarm() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an alarm: timerfd_create: %w", err)
	}
	a := &Alarm{file: os.NewFile(uintptr(fd), "alarm")}
	if a.raw, err = a.file.SyscallConn(); err != nil {
		a.file.Close()
		return nil, fmt.Errorf("make an alarm: %w", err)
	}
	return a, nil
}

// Set makes Wait return at the moment at, in nanoseconds of CLOCK_MONOTONIC, in
// place of one that was set before; a moment that has passed is now.
func (a *Alarm) Set(at int64) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(at, 1))} // 0 would switch it off
	var errno syscall.Errno
	if a.raw.Control(func(fd uintptr) {
		_, _, errno = syscall.RawSyscall6(unix.SYS_TIMERFD_SETTIME, fd, unix.TFD_TIMER_ABSTIME, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	}) != nil {
		return fmt.Errorf("set an alarm: %w", os.ErrClosed)
	}
	if errno != 0 {
		return fmt.Errorf("set an alarm: timerfd_settime: %w", errno)
	}
	return nil
}

// Wait returns once the alarm has gone off, and has not been waited for since.
// After Close it is an error that matches os.ErrClosed.
func (a *Alarm) Wait() error {
	var count uint64
	var errno syscall.Errno
	if a.raw.Read(func(fd uintptr) bool {
		_, _, errno = syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&count)), unsafe.Sizeof(count))
		return errno != syscall.EAGAIN
	}) != nil {
		return fmt.Errorf("wait for an alarm: %w", os.ErrClosed)
	}
	if errno != 0 {
		return fmt.Errorf("wait for an alarm: read: %w", errno)
	}
	return nil
}

// Close ends a Wait.
func (a *Alarm) Close() error { return a.file.Close() }
