package election

import "github.com/standbyd/standbyd/coord/shm"

// takeVacant is the claim's steps C2 to C10 in their order, for a lease that
// nobody owns and a claim without stamp: the common case in a straight line.
// epoch and owner are what C1 and C2 loaded. False means that something was not
// as in the common case; then the claim judges everything, and what was stored
// up to there is what an attempt leaves that was stopped at that step.
//
// A store waits in the processor until it is done before each locked
// instruction, so there are few: nothing is passed in memory.
func (e *Election) takeVacant(pid uint32, seat int, epoch, term uint64) bool {
	s := e.hot
	pause(pointClaimBeat)
	if uint32(s.Heartbeat[term&1].Load()>>32) != uint32(term) {
		return false
	}
	// C4
	pause(pointClaimControl)
	if s.Control.Load()&^gateBit != 0 || term == shm.MaxTerm {
		return false
	}
	// C6
	pause(pointClaimPrepare)
	next := &s.Heartbeat[(term+1)&1]
	nextWord := next.Load()
	if uint32(nextWord>>32) != uint32(term-1) {
		return false
	}
	pause(pointClaimPrepareCAS)
	if !next.CompareAndSwap(nextWord, shm.PackHeartbeat(uint32(term+1), epoch, false)) {
		return false
	}
	// C7
	var commit uint64
	if e.seg.HasPayload() {
		pause(pointClaimCommit)
		commit = s.Commit.Load()
	}
	// C9
	pause(pointClaimTake)
	if !s.Owner.CompareAndSwap(term, shm.PackOwner(pid, term+1)) {
		return false
	}
	// C10
	pause(pointClaimAdopt)
	if e.seg.HasPayload() && !e.adopt(pid, term+1, commit) {
		return false
	}
	pause(pointClaimRecord)
	e.seg.RecordPlainClaim(term+1, pid, seat, uint64(causeStepDown))
	return true
}

// alive reports whether the heartbeat word of the owner word's term says that
// it can beat.
func alive(owner, beat uint64) bool {
	return uint32(beat>>32) == uint32(owner&shm.MaxTerm) && beat&sealBit == 0
}
