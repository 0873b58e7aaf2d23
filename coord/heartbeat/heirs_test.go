package heartbeat

import (
	"slices"
	"testing"
)

func TestPlace(t *testing.T) {
	const epoch, grace = 100, 3
	members := []Member{
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
		if got := Place(seat, members, epoch, grace); got != want {
			t.Errorf("seat %d has %d before it, want %d", seat, got, want)
		}
	}
}

// In the first stale epoch those are woken who go first, later everybody; where
// nobody can go first, everybody at once.
func TestWakeHeirs(t *testing.T) {
	tb := newTable(t, 8)
	var seats []*Seat
	for i := range 5 {
		s, err := tb.Join(self(t), JoinOptions{Index: i, Candidate: Candidate{Priority: int32(i)}})
		if err != nil {
			t.Fatal(err)
		}
		s.SetReady(true)
		s.SetRacing(i != 4) // it leads
		seats = append(seats, s)
	}
	epoch, grace := tb.seg.Epoch.Load(), uint64(3)
	woken := func(staleFor int64) (who []int) {
		before := make([]uint32, len(seats))
		for i, s := range seats {
			before[i] = s.Event()
		}
		tb.WakeHeirs(staleFor, epoch, grace)
		for i, s := range seats {
			if s.Event() != before[i] {
				who = append(who, i)
			}
		}
		return who
	}
	for _, c := range []struct {
		staleFor int64
		want     []int
	}{{-1, nil}, {0, nil}, {1, []int{2, 3}}, {2, []int{0, 1, 2, 3, 4}}, {9, []int{0, 1, 2, 3, 4}}} {
		if who := woken(c.staleFor); !slices.Equal(who, c.want) {
			t.Errorf("stale for %d epochs: %v are woken, want %v", c.staleFor, who, c.want)
		}
	}
	seats[3].SetCandidate(Candidate{Priority: 3, NoFailover: true})
	if who := woken(1); !slices.Equal(who, []int{1, 2}) {
		t.Errorf("the first one may not fail over: %v are woken", who)
	}
	for _, s := range seats {
		s.SetRacing(false)
	}
	if who := woken(1); len(who) != len(seats) {
		t.Errorf("nobody is in the race: %v are woken", who)
	}
}
