package coord

import (
	"time"

	"github.com/standbyd/standbyd/coord/heartbeat"
)

// stepIn is how long each place in the order of candidates waits for the ones
// before it. Nobody knows whether they run; so nobody waits longer than this.
const stepIn = 250 * time.Microsecond

// place is how many candidates go before the one in seat me: those in the
// race (ready, neither leading nor in a back-off), who may fail over, have
// beaten within grace epochs, and come first in the table's order. Pure.
func place(me int, members []heartbeat.Member, epoch, grace uint64) int {
	var mine *heartbeat.Member
	for i := range members {
		if members[i].Seat == me {
			mine = &members[i]
		}
	}
	if mine == nil {
		return 0
	}
	n := 0
	for i := range members {
		if o := &members[i]; o.Seat != me && runs(o, epoch, grace) && o.Before(*mine) {
			n++
		}
	}
	return n
}

// contends reports whether the one in seat me is in the race. Pure.
func contends(me int, members []heartbeat.Member) bool {
	for i := range members {
		if o := &members[i]; o.Seat == me {
			return o.Ready && o.Racing && !o.Candidate.NoFailover
		}
	}
	return false
}

// heir is the seat of the candidate that goes first, -1 if there is none. Pure.
func heir(members []heartbeat.Member, epoch, grace uint64) int {
	var first *heartbeat.Member
	for i := range members {
		if o := &members[i]; runs(o, epoch, grace) && (first == nil || o.Before(*first)) {
			first = o
		}
	}
	if first == nil {
		return -1
	}
	return first.Seat
}

// runs reports whether o is a candidate that is likely to act.
func runs(o *heartbeat.Member, epoch, grace uint64) bool {
	return o.Ready && o.Racing && !o.Candidate.NoFailover && int64(epoch-o.BeatEpoch) <= int64(grace)
}
