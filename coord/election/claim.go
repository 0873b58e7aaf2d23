package election

import (
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

// Policy says who may take the lease from a healthy owner.
type Policy = uint8

// The policies; a segment's own is in its header.
const (
	Sticky    Policy = shm.PreemptSticky    // nobody
	LowestPID Policy = shm.PreemptLowestPID // a lower pid
	Priority  Policy = shm.PreemptPriority  // a member with a strictly higher priority
)

// Attempt is one attempt to get the lease.
type Attempt struct {
	PID  uint32
	Seat int // of the claimant, -1 none; decides nominations and priority
	// Term is the one that this claim holds already, 0 none: a claim of an
	// owner in its own term changes nothing.
	Term   uint64
	Grace  uint64 // epochs an owner may be behind
	Policy Policy
	// Dead says whether pid is proven dead, by a proof that begins when it is
	// called: then the owner word has been loaded. nil proves nothing.
	Dead func(pid uint32) bool
	// Dying says whether there is a hint that the owner (pid, term) is about
	// to end. It is no proof, and is looked at only where the segment's fence
	// is the token: then the lease is taken as a stale one is, through the
	// seal. nil hints at nothing.
	Dying func(pid uint32, term uint64) bool
	// Stamp records the times of the claim in the ring.
	Stamp bool
}

// Grant is a claim that succeeded.
type Grant struct {
	Term     uint64
	Previous uint32      // who owned it before, 0 nobody
	Reason   role.Reason // why it could be taken; "" if it was held already
}

// maxRestarts bounds how often a claim starts over while the owner word stays
// the same. Each restart that other members cause changes a word for good, and
// none has more than a few to change within a term; only foreign writes to the
// segment get here.
const maxRestarts = 10000

// Claim makes one attempt. The error is a *Refused, which matches ErrHeld, or
// one of those that errors.go lists under "a claim".
func (e *Election) Claim(a Attempt) (Grant, error) {
	g, why, err := e.claim(&a)
	e.tally(g, why, err)
	if why != 0 {
		owner, term := e.Owner()
		return Grant{}, &Refused{Owner: owner, Term: term, Why: why}
	}
	return g, err
}

// claim is the protocol's claim rule, in the order of its steps; doc.go has
// the argument for each. It does not allocate.
func (e *Election) claim(a *Attempt) (Grant, Why, error) {
	if !valid(a.PID) {
		return Grant{}, 0, ErrInvalidPID
	}
	s := e.seg
	for range maxRestarts {
		// C1: the epoch before the owner word. A claimant that is paused in
		// between then finds the owner fresher than it is, never staler.
		pause(pointClaimEpoch)
		epoch := s.Epoch.Load()
		pause(pointClaimOwner)
		// C2
		owner := s.Owner.Load()
		pid, term := shm.UnpackOwner(owner)
		if pid == 0 && !a.Stamp && a.Seat < 0 && e.takeVacant(a.PID, epoch, owner) != 0 {
			return Grant{Term: term + 1, Reason: role.ReasonStepDown}, 0, nil
		}
		pause(pointClaimBeat)
		beatWord := s.Heartbeat[term&1].Load()
		beat := shm.UnpackHeartbeat(beatWord)
		if beat.Tag != uint32(term) {
			continue
		}
		// C3: an owner in its own term.
		if pid == a.PID && term == a.Term {
			if !beat.Sealed {
				return Grant{Term: term, Previous: pid}, 0, nil
			}
			pause(pointClaimUnseal)
			s.Owner.CompareAndSwap(owner, shm.PackOwner(0, term))
			continue
		}
		// C4
		pause(pointClaimControl)
		if no := e.forbids(a); no != 0 {
			return Grant{}, no, nil
		}
		if term == shm.MaxTerm {
			return Grant{}, 0, ErrTermsExhausted
		}
		// C5: may I?
		pause(pointClaimProof)
		why := e.mayTake(a, pid, term, epoch, beat)
		if why == causeNone && pid == a.PID {
			// Another claim of this process, or one of a dead process that had
			// its pid and no seat: only its beats tell, as with anybody's.
			return Grant{}, WhyOwnClaim, nil
		}
		if why == causeNone {
			return Grant{}, WhyHeld, nil
		}
		var detected int64
		if a.Stamp {
			detected = shm.MonoNow()
		}
		// C6: the heartbeat of the term to come, before the term.
		pause(pointClaimPrepare)
		next := s.Heartbeat[(term+1)&1]
		nextWord := next.Load()
		fresh := shm.PackHeartbeat(uint32(term+1), epoch, false)
		pause(pointClaimPrepareCAS)
		switch n := shm.UnpackHeartbeat(nextWord); n.Tag {
		case uint32(term - 1):
			if !next.CompareAndSwap(nextWord, fresh) {
				continue
			}
		case uint32(term + 1):
			if !n.Sealed && shm.Behind(epoch, n.Epoch) > 0 && !next.CompareAndSwap(nextWord, fresh) {
				continue
			}
		default:
			continue
		}
		// C7: the payload's commit word, before the owner word changes.
		var commit uint64
		if s.HasPayload() {
			pause(pointClaimCommit)
			commit = s.Commit.Load()
		}
		// C8: taken as stale, or at a hint, the owner must not have beaten since
		// it was judged, and can beat no more.
		if why == causeHang || why == causeDying {
			pause(pointClaimSeal)
			if !s.Heartbeat[term&1].CompareAndSwap(beatWord, beatWord|sealBit) {
				continue
			}
		}
		// C9
		pause(pointClaimTake)
		if !s.Owner.CompareAndSwap(owner, shm.PackOwner(a.PID, term+1)) {
			continue
		}
		// C10
		pause(pointClaimAdopt)
		if s.HasPayload() && !e.adopt(a.PID, term+1, commit) {
			return Grant{}, WhyHeld, nil
		}
		pause(pointClaimRecord)
		r := shm.ClaimRecord{PID: a.PID, Previous: pid, Seat: a.Seat, Reason: uint64(why), DetectedAt: detected}
		if a.Stamp {
			r.ClaimedAt = shm.MonoNow()
			if why == causeHang {
				e.stampHang(term, beat)
			}
		}
		s.RecordClaim(term+1, r)
		return Grant{Term: term + 1, Previous: pid, Reason: reasons[why]}, 0, nil
	}
	return Grant{}, 0, ErrDamaged
}

const sealBit = 1 << 31

// mayTake says why the lease may be taken from pid, causeNone if it may not.
func (e *Election) mayTake(a *Attempt, pid uint32, term, epoch uint64, beat shm.Heartbeat) cause {
	switch {
	case pid == 0:
		return e.whyVacant(a)
	case a.Dead != nil && a.Dead(pid):
		return causeCrash
	case a.Dying != nil && e.seg.Params().Fence == shm.FenceToken && a.Dying(pid, term):
		return causeDying
	case beat.Sealed || stale(epoch, beat, e.seg.Forgiven.Load(), a.Grace):
		return causeHang
	case a.Policy == LowestPID && a.PID < pid:
		return causePreempt
	case a.Policy == Priority && e.outranks(a.Seat, pid):
		return causePreempt
	}
	return causeNone
}

// whyVacant: a leader that ended in order has retired from the active word
// before it released; one that was evicted is still named there.
// Claims without a stamp are not looked up: the reason is for history only.
func (e *Election) whyVacant(a *Attempt) cause {
	if !a.Stamp {
		return causeStepDown
	}
	_, term := e.Owner()
	if term == 0 {
		return causeFirst
	}
	if pid, active := e.Active(); pid != 0 && active == term {
		return causeCrash
	}
	if r := e.seg.Ring(term); r.Term.Load() == term && r.EndedAt.Load() != 0 && r.RetiredAt.Load() == 0 {
		return causeCrash
	}
	if c := e.control(); c.Planned && c.ResignTerm == term && c.Nominee >= 0 && c.Nominee == a.Seat {
		return causePlanned
	}
	return causeStepDown
}

// stale reports whether an owner is more than grace epochs behind, and has not
// been forgiven within as many. A grace of 2^30 or more is never reached: the
// differences are right only below that.
func stale(epoch uint64, beat shm.Heartbeat, forgiven, grace uint64) bool {
	if grace >= 1<<30 {
		return false
	}
	return shm.Behind(epoch, beat.Epoch) > int64(grace) && int64(epoch-forgiven) > int64(grace)
}

func (e *Election) outranks(seat int, owner uint32) bool {
	mine, theirs := seat, e.seg.SeatOf(owner)
	if mine < 0 || mine >= len(e.seg.Seats) || theirs < 0 || e.seg.Seats[mine].Status.Load()&shm.StatusLast != 0 {
		return false
	}
	priority := func(i int) int32 { return int32(e.seg.Seats[i].Candidate.Load() >> 32) }
	return priority(mine) > priority(theirs)
}

// adopt puts term into the commit word, so that no earlier term can publish.
// It is false if the lease was lost meanwhile.
func (e *Election) adopt(pid uint32, term uint64, seen uint64) bool {
	return e.seg.Commit.CompareAndSwap(seen, adopted(seen, term)) || e.adoptAgain(pid, term)
}

// adoptAgain is for when the commit word was not as it had been seen.
func (e *Election) adoptAgain(pid uint32, term uint64) bool {
	for {
		pause(pointClaimAdoptAgain)
		seen := e.seg.Commit.Load()
		pause(pointClaimAdoptOwner)
		if e.seg.Owner.Load() != shm.PackOwner(pid, term) {
			return false
		}
		pause(pointClaimAdopt)
		if e.seg.Commit.CompareAndSwap(seen, adopted(seen, term)) {
			return true
		}
	}
}

// adopted is the commit word seen with another term, and the same cell.
func adopted(seen, term uint64) uint64 {
	return seen&(1<<shm.CommitTermShift-1) | term<<shm.CommitTermShift
}
