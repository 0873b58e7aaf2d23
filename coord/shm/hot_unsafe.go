package shm

import (
	"sync/atomic"
	"unsafe"
)

// HotWords are the words of the protocol as they lie in the mapping, so that
// the hot paths need one pointer for all of them. They are the same words as
// those of the Segment.
type HotWords struct {
	Owner     LoneWord
	Heartbeat [2]LoneWord

	Epoch, TickedAt, Forgiven atomic.Uint64
	_                         [104]byte

	Active LoneWord

	Control, Resign, Granted, Until atomic.Uint64
	_                               [96]byte

	Commit LoneWord
	Joins  LoneWord
}

// LoneWord is alone in its line of 128 bytes.
type LoneWord struct {
	atomic.Uint64
	_ [120]byte
}

// ringEntry is an entry of the ring as it lies in the mapping.
type ringEntry [ringEntrySize / 8]uint64

// ringClaim is the word of a ringEntry that RecordPlainClaim writes.
const ringClaim = offRingClaim / 8

// These do not compile if the struct does not lie as the table in layout.go says.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(HotWords{}.Heartbeat)-(offH0-offOwner)]
	_ = [1]struct{}{}[unsafe.Offsetof(HotWords{}.Epoch)-(offEpoch-offOwner)]
	_ = [1]struct{}{}[unsafe.Offsetof(HotWords{}.TickedAt)-(offTickedAt-offOwner)]
	_ = [1]struct{}{}[unsafe.Offsetof(HotWords{}.Forgiven)-(offForgiven-offOwner)]
	_ = [1]struct{}{}[unsafe.Offsetof(HotWords{}.Active)-(offActive-offOwner)]
	_ = [1]struct{}{}[unsafe.Offsetof(HotWords{}.Control)-(offControl-offOwner)]
	_ = [1]struct{}{}[unsafe.Offsetof(HotWords{}.Until)-(offUntil-offOwner)]
	_ = [1]struct{}{}[unsafe.Offsetof(HotWords{}.Commit)-(offCommit-offOwner)]
	_ = [1]struct{}{}[unsafe.Offsetof(HotWords{}.Joins)-(offJoin-offOwner)]
	_ = [1]struct{}{}[unsafe.Sizeof(HotWords{})-(headerSize-offOwner)]
	_ = [1]struct{}{}[unsafe.Sizeof(LoneWord{})-(offH1-offH0)]
)

// hotAt is the words at the start of mem, which has at least a header.
func hotAt(mem []byte) *HotWords {
	return (*HotWords)(unsafe.Pointer(&mem[offOwner : offOwner+unsafe.Sizeof(HotWords{})][0]))
}

// ringIn is the n entries of a ring at off in mem, which has been checked to
// hold them.
func ringIn(mem []byte, off, n int) []ringEntry {
	return unsafe.Slice((*ringEntry)(unsafe.Pointer(&mem[off : off+n*ringEntrySize][0])), n)
}
