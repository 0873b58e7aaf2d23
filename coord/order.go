package coord

import (
	"time"

	"github.com/standbyd/standbyd/coord/heartbeat"
)

// stepIn is how long each place in the order of candidates waits for the ones
// before it. Nobody knows whether they run; so nobody waits longer than this.
const stepIn = 250 * time.Microsecond

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
		if o := &members[i]; o.Runs(epoch, grace) && (first == nil || o.Before(*first)) {
			first = o
		}
	}
	if first == nil {
		return -1
	}
	return first.Seat
}
