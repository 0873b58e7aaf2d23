package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

// keeper is the goroutine behind a claim: it ticks, beats, and notices the
// loss. It sleeps on the seat's event word, so that a loss is seen at once.
type keeper struct {
	contender
	term    uint64
	manual  bool
	lost    chan struct{} // closed when the term is over
	changed chan struct{} // says that some word may have changed; never full for long
	after   func()        // what remains to be done after the release

	quit   atomic.Bool
	exited chan struct{}

	once sync.Once
	err  error // of the release
}

func startKeeper(c contender, term uint64, manual bool) *keeper {
	k := &keeper{
		contender: c, term: term, manual: manual,
		lost: make(chan struct{}), changed: make(chan struct{}, 1), exited: make(chan struct{}),
	}
	go k.run()
	return k
}

func (k *keeper) run() {
	defer close(k.exited)
	ended := false
	for {
		count := k.seat.Event()
		if k.quit.Load() {
			return
		}
		k.e.Tick(shm.MonoNow())
		k.seat.Beat(k.e.Epoch())
		if !ended && k.over() {
			ended = true
			close(k.lost)
		}
		select {
		case k.changed <- struct{}{}:
		default:
		}
		if err := k.seat.WaitEvent(count, untilTick(k.seg)); err != nil {
			time.Sleep(untilTick(k.seg)) // no way to wait for an event here: then by the clock alone
		}
	}
}

// over beats, unless the program does, and reports whether the term is over:
// taken, sealed, or in a segment that others cannot find any more.
func (k *keeper) over() bool {
	if k.seg.Check() != nil {
		return true
	}
	if !k.manual {
		return k.e.Beat(k.pid, k.term) != nil
	}
	beat := shm.UnpackHeartbeat(k.seg.Heartbeat[k.term&1].Load())
	return k.seg.Owner.Load() != shm.PackOwner(k.pid, k.term) || beat.Sealed || beat.Tag != uint32(k.term)
}

// stop ends the goroutine.
func (k *keeper) stop() {
	k.quit.Store(true)
	k.seat.Interrupt()
	<-k.exited
}

// release gives everything back, once.
func (k *keeper) release(context.Context) error {
	k.once.Do(func() {
		k.stop()
		k.err = giveBack(k.e, k.pid, k.term)
		k.seat.Leave()
		k.after()
	})
	return k.err
}

// untilTick is how long it is until somebody may tick, at least a tenth of a
// tick: others do it too.
func untilTick(seg *shm.Segment) time.Duration {
	tick := seg.Params().Tick
	d := time.Duration(int64(seg.TickedAt.Load()) + int64(tick) - shm.MonoNow())
	return min(max(d, tick/10, time.Microsecond), tick)
}
