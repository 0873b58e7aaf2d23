package lease

import "time"

// stepIn is how long each place in the queue leaves the lease to those before
// it. Nobody knows whether they run, so nobody waits longer than this.
const stepIn = 250 * time.Microsecond

// queue remembers since when one owner's lease has been there to take, so that
// a contender further down steps in after its time, whoever wakes it before.
type queue struct {
	pid   uint32
	term  uint64
	since time.Time
}

// wait is how long to leave the lease to those who go before; 0 or less: go.
func (q *queue) wait(c *contender, pid uint32, term uint64) time.Duration {
	before := 0
	me, epoch, grace := c.seat.Member(), c.e.Epoch(), int64(min(c.seg.Params().Grace, 1<<30))
	for _, m := range c.table.Members() {
		if m.Seat != me.Seat && m.Ready && m.Racing && !m.Candidate.NoFailover && int64(epoch-m.BeatEpoch) <= grace && m.Before(me) {
			before++
		}
	}
	if before == 0 {
		return 0
	}
	now := time.Now()
	if q.since.IsZero() || q.pid != pid || q.term != term {
		*q = queue{pid, term, now}
	}
	return q.since.Add(time.Duration(before) * stepIn).Sub(now)
}
