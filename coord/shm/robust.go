package shm

import "sync/atomic"

// Bits of a robust word, as the kernel reads and writes them.
const (
	RobustWaiters uint32 = 1 << 31 // FUTEX_WAITERS: wake one when the thread ends
	RobustDied    uint32 = 1 << 30 // FUTEX_OWNER_DIED: the thread has ended
	robustThread  uint32 = 1<<30 - 1
)

// RobustWord is the word on which the member in seat waiter waits for the end
// of the robust thread of the member in seat owner. Both must be seats of the
// table.
func (s *Segment) RobustWord(owner, waiter int) *atomic.Uint32 {
	return uint32At(s.m.mem, s.geo.robustAt(owner, waiter))
}

// ArmRobust readies a robust word for the thread whose id the owner's seat
// shows, and returns what to sleep on. fired says that this thread has ended.
// ok is false if nothing will fire the word.
//
// The thread may have ended before this, and then fires nothing any more: look
// for its death after the word was armed, and sleep only then.
func ArmRobust(word *atomic.Uint32, thread uint64) (armed uint32, fired, ok bool) {
	tid := uint32(thread) & robustThread
	if tid == 0 || uint64(tid) != thread {
		return 0, false, false
	}
	for {
		switch w := word.Load(); {
		case w&RobustDied != 0:
			return w, true, true
		case w == tid|RobustWaiters:
			return w, false, true
		default:
			word.CompareAndSwap(w, tid|RobustWaiters)
		}
	}
}
