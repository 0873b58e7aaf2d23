package election

import "github.com/standbyd/standbyd/coord/shm"

// TryClaim makes one attempt for pid, by the policy LowestPID: a lower pid
// takes the lease from a healthy higher one. It returns the term; ErrHeld if
// another has it, ErrInvalidPID. A claim by the owner itself changes nothing.
func (e *Election) TryClaim(pid uint32, grace uint64) (term uint64, err error) {
	// An owner in its own term (C3), and a vacant lease.
	mine := e.remembered.Load()
	s := e.hot
	pause(pointClaimEpoch)
	epoch := s.Epoch.Load()
	pause(pointClaimOwner)
	owner := s.Owner.Load()
	if owner == mine && pid != 0 && owner>>ownerShift == uint64(pid) {
		pause(pointClaimBeat)
		if alive(owner, s.Heartbeat[owner&1].Load()) {
			return owner & shm.MaxTerm, nil
		}
		return e.tryClaim(pid, grace)
	}
	if owner>>ownerShift != 0 || !valid(pid) {
		return e.tryClaim(pid, grace)
	}
	won := e.takeVacant(pid, epoch, owner)
	if won == 0 {
		return e.tryClaim(pid, grace)
	}
	increment(&e.count.claims)
	if e.first.Load() != uint32(won>>ownerShift) {
		return e.rememberFirst(won)
	}
	e.remembered.Store(won)
	return won & shm.MaxTerm, nil
}

// takeVacant is the claim's steps C2 to C10 in their order, for a lease that
// nobody owns, by who has no seat, and without stamps: the common case of the
// classic verbs in a straight line. epoch and term (an owner word without pid)
// are what C1 and C2 loaded. It returns the new owner word, 0 if something was
// not as in the common case; then the claim judges everything, and what was
// stored up to there is what an attempt leaves that was stopped at that step.
//
// A store waits in the processor until it is done before each locked
// instruction, so there are few: nothing is passed in memory.
func (e *Election) takeVacant(pid uint32, epoch, term uint64) (owner uint64) {
	s := e.hot
	pause(pointClaimBeat)
	if uint32(s.Heartbeat[term&1].Load()>>32) != uint32(term) {
		return 0
	}
	// C4
	pause(pointClaimControl)
	if s.Control.Load()&^gateBit != 0 || term == shm.MaxTerm {
		return 0
	}
	// C6
	coming := term + 1
	pause(pointClaimPrepare)
	next := &s.Heartbeat[coming&1]
	nextWord := next.Load()
	if uint32(nextWord>>32) != uint32(term-1) {
		return 0
	}
	pause(pointClaimPrepareCAS)
	if !next.CompareAndSwap(nextWord, beatenIn(coming, epoch)) {
		return 0
	}
	// C7
	var commit uint64
	if e.payload {
		pause(pointClaimCommit)
		commit = s.Commit.Load()
	}
	// C9
	owner = uint64(pid)<<ownerShift | coming
	pause(pointClaimTake)
	if !s.Owner.CompareAndSwap(term, owner) {
		return 0
	}
	// C10
	pause(pointClaimAdopt)
	if e.payload && !s.Commit.CompareAndSwap(commit, adopted(commit, coming)) && !e.adoptAgain(pid, coming) {
		return 0
	}
	pause(pointClaimRecord)
	e.seg.RecordPlainClaim(owner)
	return owner
}

// alive reports whether the heartbeat word of the owner word's term says that
// it can beat.
func alive(owner, beat uint64) bool {
	return uint32(beat>>32) == uint32(owner&shm.MaxTerm) && beat&sealBit == 0
}
