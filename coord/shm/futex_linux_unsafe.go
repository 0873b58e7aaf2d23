//go:build linux

package shm

import (
	"errors"
	"math"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The operations of futex(2), without FUTEX_PRIVATE_FLAG: the waiters are in
// other processes.
const (
	futexWait       = 0
	futexWake       = 1
	futexWaitBitset = 9
	futexWakeBitset = 10
)

// Of the 32 bits by which a waker can tell waiters apart: WaitPatient has all
// but one, every other wait has all.
const (
	everybody = 1<<32 - 1
	impatient = 1
)

// Wait blocks its thread until the word is woken, no longer holds old, or
// timeout has passed (0 or less: no timeout). It may return early; the caller
// looks again. The error is nil in all these cases.
func Wait(word *atomic.Uint32, old uint32, timeout time.Duration) error {
	var ts *unix.Timespec
	if timeout > 0 {
		t := unix.NsecToTimespec(int64(timeout))
		ts = &t
	}
	_, _, errno := syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(old), uintptr(unsafe.Pointer(ts)), 0, 0)
	switch errno {
	case 0, syscall.EAGAIN, syscall.EINTR, syscall.ETIMEDOUT:
		return nil
	}
	return errors.Join(ErrNotSupported, errno)
}

// WaitPatient is Wait for who need not hear of what is urgent: WakeUrgent leaves
// it asleep, Wake does not. until is CLOCK_MONOTONIC in nanoseconds.
func WaitPatient(word *atomic.Uint32, old uint32, until int64) error {
	ts := unix.NsecToTimespec(until)
	_, _, errno := syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitBitset, uintptr(old), uintptr(unsafe.Pointer(&ts)), 0, everybody&^impatient)
	switch errno {
	case 0, syscall.EAGAIN, syscall.EINTR, syscall.ETIMEDOUT:
		return nil
	}
	return errors.Join(ErrNotSupported, errno)
}

// WakeUrgent wakes all waiters of the word but those of WaitPatient, and says how
// many there were.
func WakeUrgent(word *atomic.Uint32) int {
	woken, _, errno := syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakeBitset, math.MaxInt32, 0, 0, impatient)
	if errno != 0 {
		return 0
	}
	return int(woken)
}

// Wake wakes up to n waiters of the word and says how many there were.
func Wake(word *atomic.Uint32, n int) int {
	woken, _, errno := syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, uintptr(n), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(woken)
}

// futexWaiter is struct futex_waitv of the kernel.
type futexWaiter struct {
	val   uint64
	addr  uint64
	flags uint32
	_     uint32
}

const futexSizeU32 = 2 // FUTEX2_SIZE_U32

// WaitEither is Wait on two words at once. On a system that cannot do that
// (Linux before 5.16, or a filter) the error matches ErrNotSupported, and
// nothing was waited for.
func WaitEither(a *atomic.Uint32, oldA uint32, b *atomic.Uint32, oldB uint32, timeout time.Duration) error {
	waiters := [2]futexWaiter{
		{val: uint64(oldA), addr: uint64(uintptr(unsafe.Pointer(a))), flags: futexSizeU32},
		{val: uint64(oldB), addr: uint64(uintptr(unsafe.Pointer(b))), flags: futexSizeU32},
	}
	var ts *unix.Timespec
	if timeout > 0 {
		t := unix.NsecToTimespec(MonoNow() + int64(timeout))
		ts = &t
	}
	_, _, errno := syscall.Syscall6(unix.SYS_FUTEX_WAITV, uintptr(unsafe.Pointer(&waiters)), uintptr(len(waiters)), 0,
		uintptr(unsafe.Pointer(ts)), unix.CLOCK_MONOTONIC, 0)
	switch errno {
	case 0, syscall.EAGAIN, syscall.EINTR, syscall.ETIMEDOUT:
		return nil
	}
	return errors.Join(ErrNotSupported, errno)
}
