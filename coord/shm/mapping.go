package shm

import (
	"fmt"
	"sync/atomic"
)

// Mapping is the shared memory of one file. Its views stay valid until Close;
// after that an access faults, so whoever closes must be the last to use it.
type Mapping struct {
	mem      []byte
	readonly bool
}

// Len is the size in bytes.
func (m *Mapping) Len() int { return len(m.mem) }

// Uint64 is a view of the 8-byte word at off, which must be aligned and inside.
func (m *Mapping) Uint64(off int) (*atomic.Uint64, error) {
	if off < 0 || off%8 != 0 || off > len(m.mem)-8 {
		return nil, fmt.Errorf("view of 8 bytes at %d of %d: %w", off, len(m.mem), ErrSize)
	}
	return uint64At(m.mem, off), nil
}

// Uint32 is a view of the 4-byte word at off, which must be aligned and inside.
func (m *Mapping) Uint32(off int) (*atomic.Uint32, error) {
	if off < 0 || off%4 != 0 || off > len(m.mem)-4 {
		return nil, fmt.Errorf("view of 4 bytes at %d of %d: %w", off, len(m.mem), ErrSize)
	}
	return uint32At(m.mem, off), nil
}

// Words is a view of n 8-byte words from off on.
func (m *Mapping) Words(off, n int) ([]atomic.Uint64, error) {
	if off < 0 || off%8 != 0 || n < 0 || off > len(m.mem)-8*n {
		return nil, fmt.Errorf("view of %d words at %d of %d bytes: %w", n, off, len(m.mem), ErrSize)
	}
	return wordsAt(m.mem, off, n), nil
}
