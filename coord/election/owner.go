package election

import (
	"github.com/standbyd/standbyd/coord/shm"
)

// Beat records that the owner lives, at most once per epoch: in an epoch that
// was beaten already nothing is stored. ErrLost means that the lease was taken
// or sealed: stop, then release.
func (e *Election) Beat(pid uint32, term uint64) error {
	if !valid(pid) {
		return ErrLost
	}
	// Beaten already, as most are: three loads, in the order of those below.
	s, owner := e.hot, shm.PackOwner(pid, term)
	pause(pointBeatOwner)
	if s.Owner.Load() == owner {
		pause(pointBeatEpoch)
		epoch := s.Epoch.Load()
		pause(pointBeatWord)
		if s.Heartbeat[owner&1].Load() == beatenIn(owner, epoch) {
			return nil
		}
	}
	return e.beat(pid, term)
}

// Beaten reports whether owner, an owner word, is in force and has been beaten
// for in this epoch: then Beat has nothing to do. Three loads.
func (e *Election) Beaten(owner uint64) bool {
	s := e.hot
	if s.Owner.Load() != owner {
		return false
	}
	epoch := s.Epoch.Load()
	return s.Heartbeat[owner&1].Load() == beatenIn(owner, epoch)
}

// beatenIn is the heartbeat word of an owner that has beaten in epoch.
func beatenIn(owner, epoch uint64) uint64 { return owner<<32 | epoch&(sealBit-1) }

func (e *Election) beat(pid uint32, term uint64) error {
	s := e.seg
	h := s.Heartbeat[term&1]
	for range maxRestarts {
		pause(pointBeatOwner)
		if s.Owner.Load() != shm.PackOwner(pid, term) {
			increment(&e.count.beatsRefused)
			return ErrLost
		}
		pause(pointBeatEpoch)
		epoch := s.Epoch.Load()
		pause(pointBeatWord)
		word := h.Load()
		beat := shm.UnpackHeartbeat(word)
		if beat.Sealed || beat.Tag != uint32(term) {
			increment(&e.count.beatsRefused)
			return ErrLost
		}
		if shm.Behind(epoch, beat.Epoch) <= 0 {
			return nil
		}
		pause(pointBeat)
		if h.CompareAndSwap(word, shm.PackHeartbeat(uint32(term), epoch, false)) {
			increment(&e.count.beats)
			return nil
		}
	}
	return ErrDamaged
}

// Release gives the lease back and wakes the waiters. ErrNotOwner if it was
// not (pid, term)'s: nothing has changed then.
func (e *Election) Release(pid uint32, term uint64) error {
	err := e.release(pid, term)
	if err == nil {
		pause(pointReleaseWake)
		e.seg.WakeAll()
	}
	return err
}

func (e *Election) release(pid uint32, term uint64) error {
	pause(pointRelease)
	if !valid(pid) || !e.seg.Owner.CompareAndSwap(shm.PackOwner(pid, term), shm.PackOwner(0, term)) {
		increment(&e.count.releasesRefused)
		return ErrNotOwner
	}
	increment(&e.count.releases)
	return nil
}

// Evict takes the lease from its owner if dead proves that it is dead. The
// proof begins after the owner word was loaded, and only that owner in that
// term is evicted.
func (e *Election) Evict(dead func(pid uint32) bool) (term uint64, evicted bool) {
	pause(pointEvictOwner)
	owner := e.seg.Owner.Load()
	pid, term := shm.UnpackOwner(owner)
	pause(pointEvictProof)
	if pid == 0 || !dead(pid) {
		return term, false
	}
	pause(pointEvict)
	if !e.seg.Owner.CompareAndSwap(owner, shm.PackOwner(0, term)) {
		return term, false
	}
	pause(pointEvictWake)
	e.seg.WakeAll()
	return term, true
}

// Bury clears the active word if dead proves that whoever it names is dead, so
// that the next leader need not prove it again. The word changes only after
// the proof, as the fencing rule asks.
func (e *Election) Bury(dead func(pid uint32) bool) (term uint64, buried bool) {
	active := e.seg.Active.Load()
	pid, term := shm.UnpackOwner(active)
	if pid == 0 || !dead(pid) {
		return term, false
	}
	e.seg.KeepInFlight(pid, term)
	if !e.seg.Active.CompareAndSwap(active, shm.PackOwner(0, term)) {
		return term, false
	}
	e.seg.WakeAll()
	return term, true
}

// Stale reports whether the owner is more than the segment's grace behind, or
// sealed. False if there is none.
func (e *Election) Stale() bool { return e.StaleFor() > 0 }

// StaleFor is for how many epochs the owner has been stale: 0 where it is not, 1
// in the first such epoch. A sealed one has been for 2 at least: somebody has
// claimed already.
func (e *Election) StaleFor() int64 {
	epoch := e.seg.Epoch.Load()
	pid, term := e.Owner()
	beat := shm.UnpackHeartbeat(e.seg.Heartbeat[term&1].Load())
	if pid == 0 || beat.Tag != uint32(term) {
		return 0
	}
	forgiven, grace := e.seg.Forgiven.Load(), e.seg.Grace()
	n := int64(0)
	if stale(epoch, beat, forgiven, grace) {
		n = min(shm.Behind(epoch, beat.Epoch), int64(epoch-forgiven)) - int64(grace)
	}
	if beat.Sealed {
		n = max(n, 2)
	}
	return n
}

// Behind is how many epochs the owner's last beat lies back.
func (e *Election) Behind() int64 {
	epoch := e.seg.Epoch.Load()
	_, term := e.Owner()
	return shm.Behind(epoch, shm.UnpackHeartbeat(e.seg.Heartbeat[term&1].Load()).Epoch)
}
