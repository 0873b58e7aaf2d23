package coord

import "sync"

// news wakes everyone who waits for "something may have changed". A waiter
// takes the channel first, judges the whole situation, and only then waits: so
// news that comes in between is not missed. Nothing is queued; the latest
// state is read from the segment.
type news struct {
	mu sync.Mutex
	ch chan struct{} // nil while nobody waits
}

// wait returns a channel that is closed at the next spread.
func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

// spread wakes all waiters, and says whether there were any.
func (n *news) spread() bool {
	n.mu.Lock()
	ch := n.ch
	n.ch = nil
	n.mu.Unlock()
	if ch != nil {
		close(ch)
	}
	return ch != nil
}
