package lease

import (
	"runtime"
	"sync/atomic"
	"time"
)

// writeLock excludes the writes of one handle from each other. It is held for
// the copy of one value, so whoever waits for it yields and looks again; it is
// half the price of a sync.Mutex, because its unlock need not be a locked
// instruction where the processor keeps stores in order. A WithLease holds it
// for as long as its function runs; then it is lent, and nobody waits for that.
type writeLock struct{ word uint32 }

const (
	lockFree uint32 = iota
	lockHeld
	lockLent
)

func (l *writeLock) lock() {
	if !atomic.CompareAndSwapUint32(&l.word, lockFree, lockHeld) {
		l.lockSlow()
	}
}

func (l *writeLock) tryLock() bool { return atomic.CompareAndSwapUint32(&l.word, lockFree, lockHeld) }

// tryLend is tryLock for long.
func (l *writeLock) tryLend() bool { return atomic.CompareAndSwapUint32(&l.word, lockFree, lockLent) }

func (l *writeLock) lent() bool { return atomic.LoadUint32(&l.word) == lockLent }

func (l *writeLock) lockSlow() {
	for try := 0; !atomic.CompareAndSwapUint32(&l.word, lockFree, lockHeld); try++ {
		if try < 100 {
			runtime.Gosched()
		} else {
			// The holder's thread is not running.
			time.Sleep(20 * time.Microsecond)
		}
	}
}
