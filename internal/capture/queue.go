//go:build unix

package capture

import (
	"sync"
	"time"
)

const (
	// queueBytes bounds what waits for the disk; as much again can be in writing.
	queueBytes = 1 << 20
	// patience is how long a full queue holds the reader up, once, before
	// lines are dropped until the disk takes something.
	patience = 100 * time.Millisecond
)

// queue stands between the reader, which must go on, and the disk, which may
// not.
type queue struct {
	wake chan struct{} // something to take
	room chan struct{} // something was taken

	mu       sync.Mutex
	pending  []byte // whole lines
	lines    uint64 // in pending
	lost     uint64 // after pending, not yet told to the taker
	dropping bool
	closed   bool
	put      uint64 // lines ever put or lost
	done     uint64 // of those, ones that the taker is through with
	waiters  []waiter
}

type waiter struct {
	until uint64
	ch    chan struct{}
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// add queues one line, or drops it if there is no room after a moment of
// patience.
func (q *queue) add(at stamp, prefix string, text []byte) (kept bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	need := len(at) + len(prefix) + len(text) + 1
	if len(q.pending)+need > queueBytes && !q.dropping {
		q.waitForRoomLocked(need)
	}
	q.put++
	if len(q.pending)+need > queueBytes {
		q.dropping = true
		q.lost++
		return false
	}
	q.pending = appendLine(q.pending, at, prefix, text)
	q.lines++
	if q.lines == 1 {
		poke(q.wake)
	}
	return true
}

func (q *queue) waitForRoomLocked(need int) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for len(q.pending)+need > queueBytes && !q.closed {
		q.mu.Unlock()
		late := false
		select {
		case <-q.room:
		case <-limit.C:
			late = true
		}
		q.mu.Lock()
		if late {
			return
		}
	}
}

// shrink lets go of memory that a quiet log does not need.
func (q *queue) shrink() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pending) == 0 {
		q.pending = nil
	}
}

// batch is what the taker gets at once.
type batch struct {
	text  []byte
	lines uint64
	lost  uint64 // lines that were dropped after these
	end   uint64 // for finished
	last  bool   // nothing follows
}

// take hands over everything that waits, and gives the room of the previous
// batch back.
func (q *queue) take(previous []byte) batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := batch{text: q.pending, lines: q.lines, lost: q.lost, end: q.put, last: q.closed}
	q.pending, q.lines, q.lost, q.dropping = previous[:0], 0, 0, false
	poke(q.room)
	return b
}

// finished is told when the batch is in the file, or given up.
func (q *queue) finished(b batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done = b.end
	kept := q.waiters[:0]
	for _, w := range q.waiters {
		if w.until <= q.done {
			close(w.ch)
		} else {
			kept = append(kept, w)
		}
	}
	q.waiters = kept
}

// settled is closed when the taker is through with all that was added before.
func (q *queue) settled() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := waiter{until: q.put, ch: make(chan struct{})}
	if w.until <= q.done {
		close(w.ch)
		return w.ch
	}
	q.waiters = append(q.waiters, w)
	poke(q.wake)
	return w.ch
}

// close makes the taker end after what is queued.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	poke(q.wake)
	poke(q.room)
}
