package shm

import (
	"encoding/binary"
	"sync/atomic"
)

// Cell is where one value lies in a mapping. The zero Cell is nowhere. It is an
// address without a length, so that a copy costs no check: whoever uses it with
// a type has compared their sizes once.
type Cell struct{ first *atomic.Uint64 }

// CellOf is the cell that these words are.
func CellOf(words []atomic.Uint64) Cell {
	if len(words) == 0 {
		return Cell{}
	}
	return Cell{&words[0]}
}

// Exists reports whether the cell is anywhere.
func (c Cell) Exists() bool { return c.first != nil }

// StoreValue copies *src into the cell, which exists and has room; T holds no
// pointers. On amd64 the stores are plain: the processor keeps them in order
// before the locked operation that publishes them, and the compiler keeps every
// store where it is relative to an atomic operation. Elsewhere each word is
// stored atomically, because a plain store may pass a later atomic one there.
func StoreValue[T any](c Cell, src *T) {
	if plainStoresKeepOrder {
		*valueOf[T](c) = *src
		return
	}
	b := Bytes(src)
	StoreWords(c.words((len(b)+7)/8), b)
}

// LoadValue copies the value out of the cell, which exists and has room for one;
// T holds no pointers. It may copy a value that is being overwritten: the caller
// loads the commit word before and after. On amd64 the loads are plain: the
// processor lets no load pass another, so none passes those of the commit word.
// Elsewhere each word is loaded atomically.
func LoadValue[T any](dst *T, c Cell) {
	if plainStoresKeepOrder {
		*dst = *valueOf[T](c)
		return
	}
	b := Bytes(dst)
	LoadWords(b, c.words((len(b)+7)/8))
}

// PlainLoads says that a value may be copied out of its cell by an assignment,
// *InPlace(cell), as LoadValue does then.
const PlainLoads = plainStoresKeepOrder

// InPlace is the value where it lies, to be copied once, by one assignment: a
// copy through LoadValue costs a second one. Only where PlainLoads.
func InPlace[T any](c Cell) *T { return valueOf[T](c) }

// StoreWords copies src into dst, with atomic stores of whole words.
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

// LoadWords copies src into dst, with atomic loads of whole words.
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
