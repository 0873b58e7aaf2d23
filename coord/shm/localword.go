package shm

import "sync/atomic"

// LocalWord is a word of this process that many goroutines may use, with a
// store that costs no locked instruction where the processor keeps stores in
// order. A Load may miss a Store that another goroutine makes at the same
// moment; it never sees half of one. The zero value holds 0.
type LocalWord struct{ v uint64 }

// Load returns the word.
func (w *LocalWord) Load() uint64 { return atomic.LoadUint64(&w.v) }

// Store sets the word. An aligned store of 8 bytes is whole on every
// processor that this builds for; the race detector cannot know that.
//
//go:norace
func (w *LocalWord) Store(v uint64) {
	if plainStoresKeepOrder {
		w.v = v
		return
	}
	atomic.StoreUint64(&w.v, v)
}
