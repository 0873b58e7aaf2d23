package heartbeat

import "testing"

// TestBefore: each row goes before the next one, for a reason that outweighs
// all that follow.
func TestBefore(t *testing.T) {
	rows := []Member{
		{JoinSeq: 9, Candidate: Candidate{Priority: 5, Lag: 3}},
		{JoinSeq: 4, Candidate: Candidate{Priority: 2, Lag: 0}},
		{JoinSeq: 3, Candidate: Candidate{Priority: 2, Lag: 7}},
		{JoinSeq: 5, Candidate: Candidate{Priority: 2, Lag: 7}},
		{JoinSeq: 1, Candidate: Candidate{Priority: -1}},
		{JoinSeq: 2, Candidate: Candidate{Priority: 9}, Last: true},
		{JoinSeq: 0, Candidate: Candidate{Priority: 8}, Last: true},
	}
	for i, a := range rows {
		for j, b := range rows {
			if got := a.Before(b); got != (i < j) {
				t.Errorf("row %d before row %d: %v", i, j, got)
			}
		}
	}
}
