package lease

import (
	"runtime"
	"sync/atomic"
	"time"
)

// writeLock excludes the writes of one handle from each other. It is held for
// the copy of one value, so whoever waits for it yields and looks again; it is
// half the price of a sync.Mutex, because its unlock need not be a locked
// instruction where the processor keeps stores in order.
type writeLock struct{ word uint32 }

func (l *writeLock) lock() {
	if !atomic.CompareAndSwapUint32(&l.word, 0, 1) {
		l.lockSlow()
	}
}

func (l *writeLock) tryLock() bool { return atomic.CompareAndSwapUint32(&l.word, 0, 1) }

func (l *writeLock) lockSlow() {
	for try := 0; !atomic.CompareAndSwapUint32(&l.word, 0, 1); try++ {
		if try < 100 {
			runtime.Gosched()
		} else {
			// The holder's thread is not running.
			time.Sleep(20 * time.Microsecond)
		}
	}
}
