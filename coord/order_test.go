package coord

import (
	"testing"

	"github.com/standbyd/standbyd/coord/heartbeat"
)

func TestHeir(t *testing.T) {
	const epoch, grace = 100, 3
	members := []heartbeat.Member{
		{Seat: 0, BeatEpoch: 100, JoinSeq: 1}, // a supervisor
		{Seat: 1, BeatEpoch: 100, JoinSeq: 2, Ready: true, Racing: true},
		{Seat: 3, BeatEpoch: 97, JoinSeq: 4, Ready: true, Racing: true, Candidate: Candidate{Priority: 5}},
		{Seat: 5, BeatEpoch: 96, JoinSeq: 6, Ready: true, Racing: true, Candidate: Candidate{Priority: 9}}, // silent
		{Seat: 7, BeatEpoch: 100, JoinSeq: 8, Ready: true, Candidate: Candidate{Priority: 9}},              // leads
	}
	if got := heir(members, epoch, grace); got != 3 {
		t.Errorf("the heir is in seat %d, want 3", got)
	}
	if got := heir(members[:1], epoch, grace); got != -1 {
		t.Errorf("nobody is a candidate, and the heir is in seat %d", got)
	}
}
