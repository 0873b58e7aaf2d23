package coord

import (
	"testing"

	"github.com/standbyd/standbyd/coord/heartbeat"
)

func TestPlace(t *testing.T) {
	const epoch, grace = 100, 3
	members := []heartbeat.Member{
		{Seat: 0, BeatEpoch: 100, JoinSeq: 1}, // a supervisor
		{Seat: 1, BeatEpoch: 100, JoinSeq: 2, Ready: true, Racing: true},
		{Seat: 2, BeatEpoch: 100, JoinSeq: 3, Ready: true, Racing: true},
		{Seat: 3, BeatEpoch: 97, JoinSeq: 4, Ready: true, Racing: true, Candidate: Candidate{Priority: 5}},
		{Seat: 4, BeatEpoch: 100, JoinSeq: 5, Ready: true, Racing: true, Candidate: Candidate{Priority: -1}},
		{Seat: 5, BeatEpoch: 96, JoinSeq: 6, Ready: true, Racing: true, Candidate: Candidate{Priority: 9}},                    // silent
		{Seat: 6, BeatEpoch: 100, JoinSeq: 7, Ready: true, Racing: true, Candidate: Candidate{Priority: 9, NoFailover: true}}, // exempt
		{Seat: 7, BeatEpoch: 100, JoinSeq: 8, Ready: true, Candidate: Candidate{Priority: 9}},                                 // leads
		{Seat: 9, BeatEpoch: 100, JoinSeq: 1, Ready: true, Racing: true, Last: true, Candidate: Candidate{Priority: 9}},       // failed as leader
		{Seat: 8, BeatEpoch: 100, JoinSeq: 9, Racing: true, Candidate: Candidate{Priority: 9}},                                // warms up
	}
	for seat, want := range map[int]int{3: 0, 1: 1, 2: 2, 4: 3, 9: 4, 99: 0} {
		if got := place(seat, members, epoch, grace); got != want {
			t.Errorf("seat %d has %d before it, want %d", seat, got, want)
		}
	}
	if got := heir(members, epoch, grace); got != 3 {
		t.Errorf("the heir is in seat %d, want 3", got)
	}
	if got := heir(members[:1], epoch, grace); got != -1 {
		t.Errorf("nobody is a candidate, and the heir is in seat %d", got)
	}
}
