//go:build linux

package shm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// RobustHold is the registration of one thread at the kernel: when the thread
// ends, for whatever reason, the words of one row are fired.
//
// The list that the kernel walks (set_robust_list(2)) lies in private memory,
// so that nobody who writes to the segment can lead it astray: node j lies as
// far from word j of the row as any other node from its word.
type RobustHold struct {
	seg    *Segment
	seat   int
	memory []byte
	before uintptr // what the thread had registered before
	head   *robustHead
	nodes  []uintptr // the links, one for each word of the row
	first  int       // the word that is fired first
}

// robustHead is struct robust_list_head of the kernel.
type robustHead struct {
	next    uintptr
	offset  int64
	pending uintptr
}

// HoldRobust registers the calling thread for the row of seat, which is this
// process's. The caller has locked its goroutine to a thread that it keeps
// until Drop. The error matches ErrNotSupported where the kernel, or a filter
// in front of it, does not take the registration.
func (s *Segment) HoldRobust(seat int) (*RobustHold, error) {
	h := &RobustHold{seg: s, seat: seat}
	var size uintptr
	if _, _, errno := syscall.RawSyscall(unix.SYS_GET_ROBUST_LIST, 0, uintptr(unsafe.Pointer(&h.before)), uintptr(unsafe.Pointer(&size))); errno != 0 {
		return nil, fmt.Errorf("look up the robust list: %w", errors.Join(ErrNotSupported, errno))
	}
	n := s.geo.seats
	memory, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(robustHead{}))+n*robustStride, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("make a robust list: %w", err)
	}
	for j := range n {
		s.RobustWord(seat, j).Store(0)
	}
	h.memory = memory
	head := (*robustHead)(unsafe.Pointer(&memory[0]))
	nodes := unsafe.Slice((*uintptr)(unsafe.Pointer(&memory[unsafe.Sizeof(robustHead{})])), n)
	head.offset = int64(uintptr(unsafe.Pointer(s.RobustWord(seat, 0)))) - int64(uintptr(unsafe.Pointer(&nodes[0])))
	head.next = uintptr(unsafe.Pointer(&nodes[0]))
	for j := range nodes {
		if j+1 < n {
			nodes[j] = uintptr(unsafe.Pointer(&nodes[j+1]))
		} else {
			nodes[j] = uintptr(unsafe.Pointer(head))
		}
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(head)), unsafe.Sizeof(*head), 0); errno != 0 {
		unix.Munmap(memory)
		return nil, fmt.Errorf("register a robust list: %w", errors.Join(ErrNotSupported, errno))
	}
	h.head, h.nodes = head, nodes
	s.Seats[seat].Robust.Store(uint64(unix.Gettid()))
	return h, nil
}

// First has the word of seat fired before all others; the words of the seats
// after it come next, round to the one before it. Called on the thread that
// called HoldRobust, whose end may come after any of the stores: from each
// state that they leave, the kernel reaches every word (it follows no more than
// some 2,000 links, and leaves alone what it has fired).
func (h *RobustHold) First(seat int) {
	n := len(h.nodes)
	if seat == h.first || seat < 0 || seat >= n {
		return
	}
	link := func(at *uintptr, to *uintptr) {
		atomic.StoreUintptr(at, uintptr(unsafe.Pointer(to)))
	}
	last, before := &h.nodes[(h.first+n-1)%n], &h.nodes[(seat+n-1)%n]
	link(last, &h.nodes[h.first])                    // round and round
	link(&h.head.next, &h.nodes[seat])               // entered elsewhere
	link(before, (*uintptr)(unsafe.Pointer(h.head))) // and left before that
	h.first = seat
}

// Drop takes the registration back: the end of the thread fires nothing any
// more. The thread is the one that called HoldRobust. The segment's words are
// touched only if touch is true.
func (h *RobustHold) Drop(touch bool) {
	if touch {
		h.seg.Seats[h.seat].Robust.Store(0)
	}
	_, _, errno := syscall.RawSyscall(unix.SYS_SET_ROBUST_LIST, h.before, unsafe.Sizeof(robustHead{}), 0)
	if errno == 0 {
		unix.Munmap(h.memory)
	}
}
