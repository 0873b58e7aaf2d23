package shm

import (
	"encoding/binary"
	"sync/atomic"
)

// StoreValue copies *src into dst, which must have room; T holds no pointers.
// On amd64 the stores are plain: the processor keeps them in order before the
// locked operation that publishes them, and the compiler keeps every store
// where it is relative to an atomic operation. Elsewhere each word is stored
// atomically, because a plain store may pass a later atomic one there.
func StoreValue[T any](dst []atomic.Uint64, src *T) {
	if plainStoresKeepOrder {
		storeValue(dst, src)
		return
	}
	StoreWords(dst, Bytes(src))
}

// LoadValue copies the value in src to *dst; T holds no pointers. It may copy
// a value that is being overwritten: the caller loads the commit word before
// and after. On amd64 the loads are plain: the processor lets no load pass
// another, so none passes those of the commit word. Elsewhere each word is
// loaded atomically.
func LoadValue[T any](dst *T, src []atomic.Uint64) {
	if plainStoresKeepOrder {
		loadValue(dst, src)
		return
	}
	LoadWords(Bytes(dst), src)
}

// StoreWords is StoreValue of bytes, with atomic stores of whole words.
func StoreWords(dst []atomic.Uint64, src []byte) {
	i := 0
	for ; len(src) >= 8; src = src[8:] {
		dst[i].Store(binary.NativeEndian.Uint64(src))
		i++
	}
	if len(src) > 0 {
		var last [8]byte
		copy(last[:], src)
		dst[i].Store(binary.NativeEndian.Uint64(last[:]))
	}
}

// LoadWords is LoadValue of bytes, with atomic loads of whole words.
func LoadWords(dst []byte, src []atomic.Uint64) {
	i := 0
	for ; len(dst) >= 8; dst = dst[8:] {
		binary.NativeEndian.PutUint64(dst, src[i].Load())
		i++
	}
	if len(dst) > 0 {
		var last [8]byte
		binary.NativeEndian.PutUint64(last[:], src[i].Load())
		copy(dst, last[:])
	}
}
