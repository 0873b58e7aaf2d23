package shm

import (
	"sync/atomic"
	"unsafe"
)

// The functions here turn checked offsets into views; callers have checked
// alignment and bounds.

func uint64At(mem []byte, off int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&mem[off]))
}

func uint32At(mem []byte, off int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&mem[off]))
}

func wordsAt(mem []byte, off, n int) []atomic.Uint64 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&mem[off])), n)
}

// Bytes is the memory of *p. T must hold no pointers; the caller checks that
// once, by its type.
func Bytes[T any](p *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), int(unsafe.Sizeof(*p)))
}

// words are the first n words of a cell that exists.
func (c Cell) words(n int) []atomic.Uint64 { return unsafe.Slice(c.first, n) }

// valueOf is the value that lies in a cell that exists.
func valueOf[T any](c Cell) *T { return (*T)(unsafe.Pointer(c.first)) }
