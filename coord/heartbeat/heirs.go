package heartbeat

// Nearest is how many candidates the owner's death wakes, and the first epoch in
// which it is stale: enough that one of them acts, and few enough that they have
// the machine for themselves.
const Nearest = 2

// Runs reports whether m is a candidate that is likely to act: in the race
// (ready, neither leading nor in a back-off), it may fail over, and it has beaten
// within grace epochs.
func (m *Member) Runs(epoch, grace uint64) bool {
	return m.Ready && m.Racing && !m.Candidate.NoFailover && int64(epoch-m.BeatEpoch) <= int64(grace)
}

// Place is how many candidates go before the member in that seat: those that run
// (see Member.Runs) and come first in the table's order. 0 if nobody sits there.
func Place(seat int, members []Member, epoch, grace uint64) int {
	var mine *Member
	for i := range members {
		if members[i].Seat == seat {
			mine = &members[i]
		}
	}
	if mine == nil {
		return 0
	}
	n := 0
	for i := range members {
		if o := &members[i]; o.Seat != seat && o.Runs(epoch, grace) && o.Before(*mine) {
			n++
		}
	}
	return n
}

// WakeHeirs wakes who may take over from an owner that has been stale for that
// many epochs (see election.Election.StaleFor; 0 wakes nobody). In the first one
// these are the candidates that go first, or all where there is none: whoever
// else wakes then takes the processors from the one that claims, and from the
// threads of the process that it kills. From the second on they are all members,
// for those may not run.
func (t *Table) WakeHeirs(staleFor int64, epoch, grace uint64) {
	if staleFor <= 0 {
		return
	}
	woken := false
	if staleFor == 1 {
		members := t.Members()
		for i := range members {
			if m := &members[i]; m.Runs(epoch, grace) && Place(m.Seat, members, epoch, grace) < Nearest {
				t.seg.WakeSeatUrgent(m.Seat)
				woken = true
			}
		}
	}
	if !woken {
		t.seg.WakeAll()
	}
}
