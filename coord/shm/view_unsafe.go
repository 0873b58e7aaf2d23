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

// storeValue copies *src over the first words of dst with plain stores.
func storeValue[T any](dst []atomic.Uint64, src *T) {
	if n := unsafe.Sizeof(*src); n > 0 {
		dst = dst[:(n+7)/8]
		*(*T)(unsafe.Pointer(&dst[0])) = *src
	}
}

// loadValue copies the first words of src to *dst with plain loads.
func loadValue[T any](dst *T, src []atomic.Uint64) {
	if n := unsafe.Sizeof(*dst); n > 0 {
		src = src[:(n+7)/8]
		*dst = *(*T)(unsafe.Pointer(&src[0]))
	}
}
