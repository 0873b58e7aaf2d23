package filelease

import (
	"os"
	"sync"
)

// A lock on KEY.live stands for a claim, and belongs to the process. Several
// Stores of it may hold the same claim, so the lock is given back by the last.
var holdings = struct {
	sync.Mutex
	of map[string]*holding // by claim
}{of: make(map[string]*holding)}

type holding struct {
	file *os.File // nil while another process is in the way
	uses int
}

// hold begins a use of the claim's lock; file is one that the caller has
// locked, or nil.
func hold(claim string, file *os.File) {
	holdings.Lock()
	defer holdings.Unlock()
	h := holdings.of[claim]
	if h == nil {
		h = &holding{}
		holdings.of[claim] = h
	}
	h.uses++
	h.set(file)
}

// improve gives the claim a lock that it had to do without.
func improve(claim string, file *os.File) {
	holdings.Lock()
	defer holdings.Unlock()
	if h := holdings.of[claim]; h != nil {
		h.set(file)
		return
	}
	unlock(file)
}

func (h *holding) set(file *os.File) {
	switch {
	case h.file == nil:
		h.file = file
	case file != nil && file != h.file:
		unlock(file)
	}
}

// letGo ends a use.
func letGo(claim string) {
	holdings.Lock()
	defer holdings.Unlock()
	h := holdings.of[claim]
	if h == nil {
		return
	}
	if h.uses--; h.uses == 0 {
		unlock(h.file)
		delete(holdings.of, claim)
	}
}

// liveOf is the claim's lock; nil if it has none.
func liveOf(claim string) *os.File {
	holdings.Lock()
	defer holdings.Unlock()
	if h := holdings.of[claim]; h != nil {
		return h.file
	}
	return nil
}

// dropLive unlocks for all who use the claim's lock.
func dropLive(claim string) {
	holdings.Lock()
	defer holdings.Unlock()
	if h := holdings.of[claim]; h != nil {
		unlock(h.file)
		h.file = nil
	}
}
