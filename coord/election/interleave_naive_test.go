//go:build interleave

package election

import (
	"testing"

	"github.com/standbyd/standbyd/coord/shm"
)

// The obvious protocol: one owner word, one heartbeat without a tag, no seal,
// no adoption. It stands here so that the walk is known to find its faults.

// naive claims for p, and reports its term. The order of the steps is what
// differs.
type naive func(p *process) (term uint64, ok bool)

func (w *world) naiveStale(epoch, beat uint64) bool { return epoch > beat+w.seg.Grace() }

// swapFirst takes the owner word first, and writes the heartbeat after.
func swapFirst(p *process) (uint64, bool) {
	s := p.w.seg
	p.pause(pointClaimEpoch)
	epoch := s.Epoch.Load()
	p.pause(pointClaimOwner)
	owner := s.Owner.Load()
	pid, term := shm.UnpackOwner(owner)
	p.pause(pointClaimBeat)
	if pid != 0 && !p.w.naiveStale(epoch, s.Heartbeat[0].Load()) {
		return 0, false
	}
	p.pause(pointClaimTake)
	if !s.Owner.CompareAndSwap(owner, shm.PackOwner(p.pid, term+1)) {
		return 0, false
	}
	p.pause(pointClaimPrepare)
	s.Heartbeat[0].Store(epoch)
	return term + 1, true
}

// beatFirst loads the heartbeat before the epoch. It writes its own heartbeat
// before it takes the owner word, as it should.
func beatFirst(p *process) (uint64, bool) {
	s := p.w.seg
	p.pause(pointClaimEpoch) // where it begins: no load
	p.pause(pointClaimOwner)
	owner := s.Owner.Load()
	pid, term := shm.UnpackOwner(owner)
	p.pause(pointClaimBeat)
	beat := s.Heartbeat[0].Load()
	p.pause(pointBeatEpoch)
	epoch := s.Epoch.Load()
	p.claimEpoch = epoch
	if pid != 0 && !p.w.naiveStale(epoch, beat) {
		return 0, false
	}
	p.pause(pointClaimPrepare)
	s.Heartbeat[0].Store(max(epoch, s.Heartbeat[0].Load()))
	p.pause(pointClaimTake)
	return term + 1, s.Owner.CompareAndSwap(owner, shm.PackOwner(p.pid, term+1))
}

// inOrder is right in both, and has no seal: a claimant that was stopped after
// it judged takes the lease from an owner that has beaten since.
func inOrder(p *process) (uint64, bool) {
	s := p.w.seg
	p.pause(pointClaimEpoch)
	epoch := s.Epoch.Load()
	p.pause(pointClaimOwner)
	owner := s.Owner.Load()
	pid, term := shm.UnpackOwner(owner)
	p.pause(pointClaimBeat)
	if pid != 0 && !p.w.naiveStale(epoch, s.Heartbeat[0].Load()) {
		return 0, false
	}
	p.pause(pointClaimPrepare)
	s.Heartbeat[0].Store(max(epoch, s.Heartbeat[0].Load()))
	p.pause(pointClaimTake)
	return term + 1, s.Owner.CompareAndSwap(owner, shm.PackOwner(p.pid, term+1))
}

func (claim naive) body(beats int) func(*process) {
	return func(p *process) {
		term, ok := claim(p)
		if !ok {
			return
		}
		for i := range beats {
			p.know(1+i, term)
			p.naiveBeat(term)
		}
		p.know(100, term)
		_ = p.w.e.Release(p.pid, term)
	}
}

func (p *process) naiveBeat(term uint64) {
	s := p.w.seg
	p.pause(pointBeatOwner)
	if s.Owner.Load() != shm.PackOwner(p.pid, term) {
		return
	}
	p.pause(pointBeatEpoch)
	epoch := s.Epoch.Load()
	p.pause(pointBeatWord)
	s.Heartbeat[0].Store(max(epoch, s.Heartbeat[0].Load()))
	p.beatEpoch = epoch
	p.w.beaten(p, term)
}

// beatsAlways owns from the start and beats in every epoch before the next
// begins: the epoch waits for it.
func beatsAlways(n int) func(*process) {
	return func(p *process) {
		for i := range n {
			p.know(i)
			p.await(pointAny, func() bool { return p.w.seg.Epoch.Load() == uint64(i+1) })
			p.w.seg.Heartbeat[0].Store(uint64(i + 1))
			p.w.life = uint64(i + 1)
		}
		hangs(p)
	}
}

func advancesBehind(n int) func(*process) {
	return func(p *process) {
		for i := range n {
			p.know(i)
			p.await(pointAny, func() bool { return p.w.life == uint64(i) })
			p.w.seg.Epoch.Add(1)
		}
		hangs(p)
	}
}

// Nobody ticks, so nobody is late; and one stale owner is succeeded by two that
// were both told.
func TestInterleaveFindsTheSwapBeforeTheHeartbeat(t *testing.T) {
	k := walk{preemptions: every}
	k.some(t, func(w *world) {
		w.tagged = false
		w.owns(w.add(9, hangs))
		w.seg.Epoch.Store(5)
		w.life, w.born = 0, 0
		w.seg.Heartbeat[0].Store(0)
		w.add(1, naive(swapFirst).body(0))
		w.add(2, naive(swapFirst).body(0))
	})
}

func TestInterleaveFindsTheHeartbeatBeforeTheEpoch(t *testing.T) {
	healthyOwner := func(claim naive) func(w *world) {
		return func(w *world) {
			w.tagged = false
			w.owns(w.add(9, beatsAlways(3)))
			w.seg.Heartbeat[0].Store(0)
			w.add(1, claim.body(0))
			w.add(90, advancesBehind(3)).free = true
		}
	}
	k := walk{preemptions: every}
	k.some(t, healthyOwner(beatFirst))
	// The same owner, found by one that loads the epoch first, is not stale
	// when it is judged.
	judged := walk{preemptions: every}
	judged.none(t, healthyOwner(func(p *process) (uint64, bool) {
		s := p.w.seg
		p.pause(pointClaimEpoch)
		epoch := s.Epoch.Load()
		p.pause(pointClaimBeat)
		if p.w.naiveStale(epoch, s.Heartbeat[0].Load()) {
			p.w.fail("P%d finds the owner stale in epoch %d", p.pid, epoch)
		}
		return 0, false
	}))
}

func TestInterleaveFindsThatThereIsNoSeal(t *testing.T) {
	k := walk{preemptions: every}
	k.some(t, func(w *world) {
		w.tagged = false
		p := w.add(9, func(p *process) {
			p.know(1)
			p.naiveBeat(1)
		})
		w.owns(p)
		w.seg.Heartbeat[0].Store(0)
		w.add(1, naive(inOrder).body(0))
		w.add(90, advances(2)).free = true
	})
}

// A claim as it should be, but for the commit word.
func TestInterleaveFindsThatNothingIsAdopted(t *testing.T) {
	unadopted := func(p *process) {
		s := p.w.seg
		a := attempt(p, LowestPID)
		p.pause(pointClaimOwner)
		owner := s.Owner.Load()
		pid, term := shm.UnpackOwner(owner)
		if pid != 0 && pid < a.PID {
			return
		}
		p.pause(pointClaimTake)
		if !s.Owner.CompareAndSwap(owner, shm.PackOwner(p.pid, term+1)) {
			return
		}
		p.w.told = max(p.w.told, term+1)
		p.know(1, term+1)
		p.pause(pointClaimCommit)
		seen := s.Commit.Load()
		p.pause(pointClaimAdoptOwner)
		if s.Owner.Load() != shm.PackOwner(p.pid, term+1) {
			return
		}
		p.pause(pointClaimAdopt)
		c := shm.UnpackCommit(seen)
		c.Term, c.Seq = shm.CommitTerm(term+1), c.Seq+1
		if s.Commit.CompareAndSwap(seen, c.Pack()) {
			p.w.published(p, term+1)
		}
	}
	k := walk{preemptions: every}
	k.some(t, func(w *world) {
		w.sticky, w.tagged = false, false
		w.add(2, unadopted)
		w.add(1, unadopted)
	})
}
