package shm

import (
	"encoding/binary"
	"sync/atomic"
)

// StoreWords copies src into dst, which must have room. On amd64 the stores
// are plain: the processor keeps them in order before the locked operation
// that publishes them. Elsewhere each word is stored atomically, because a
// plain store may pass a later atomic one there.
func StoreWords(dst []atomic.Uint64, src []byte) {
	if plainStoresKeepOrder {
		storePlain(dst, src)
		return
	}
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

// LoadWords copies src into dst word by word with atomic loads. It may copy a
// value that is being overwritten: the caller re-checks the commit word.
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
