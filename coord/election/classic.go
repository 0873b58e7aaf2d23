package election

import "github.com/standbyd/standbyd/coord/shm"

// The classic verbs name a pid and decide by the words of the segment alone:
// they neither look at /proc nor signal anybody, and do not allocate. Each
// acts in the term that this handle won for the pid, else in the one in which
// it first saw the pid own, so that a handle which was closed and opened again
// goes on.

// ownerShift is where the pid begins in an owner word.
const ownerShift = 42

func (e *Election) tryClaim(pid uint32, grace uint64) (term uint64, err error) {
	g, why, err := e.claim(&Attempt{PID: pid, Seat: -1, Term: e.termOf(pid), Grace: grace, Policy: LowestPID})
	e.tally(g, why, err)
	if why != 0 {
		return 0, ErrHeld
	}
	if err != nil {
		return 0, err
	}
	e.remember(pid, g.Term)
	return g.Term, nil
}

// BeatAsLeader is Beat in the remembered term. ErrNotOwner if there is none.
func (e *Election) BeatAsLeader(pid uint32) error {
	s, mine := e.hot, e.remembered.Load()
	if pid != 0 && mine>>ownerShift == uint64(pid) {
		pause(pointBeatOwner)
		if s.Owner.Load() == mine {
			pause(pointBeatEpoch)
			epoch := s.Epoch.Load()
			pause(pointBeatWord)
			if s.Heartbeat[mine&1].Load() == beatenIn(mine, epoch) {
				return nil
			}
		}
	}
	return e.beatAsLeader(pid)
}

func (e *Election) beatAsLeader(pid uint32) error {
	term := e.termOf(pid)
	if term == 0 {
		increment(&e.count.beatsRefused)
		return ErrNotOwner
	}
	return e.Beat(pid, term)
}

// StepDown is Release in the remembered term, which is forgotten.
func (e *Election) StepDown(pid uint32) error {
	if mine := e.remembered.Load(); pid != 0 && mine>>ownerShift == uint64(pid) {
		pause(pointRelease)
		released := e.hot.Owner.CompareAndSwap(mine, mine&shm.MaxTerm)
		e.remembered.Store(0)
		if !released {
			increment(&e.count.releasesRefused)
			return ErrNotOwner
		}
		increment(&e.count.releases)
		pause(pointReleaseWake)
		if e.hot.Joins.Load() != 0 {
			e.seg.WakeAll()
		}
		return nil
	}
	return e.stepDown(pid)
}

func (e *Election) stepDown(pid uint32) error {
	term := e.termOf(pid)
	if term == 0 {
		increment(&e.count.releasesRefused)
		return ErrNotOwner
	}
	err := e.Release(pid, term)
	e.forget(pid)
	return err
}

// CurrentLeader is the owner; ok is false if there is none.
func (e *Election) CurrentLeader() (pid uint32, ok bool) {
	pid, _ = e.Owner()
	return pid, pid != 0
}

// IsLeader reports whether pid owns the lease in the term remembered for it.
func (e *Election) IsLeader(pid uint32) bool {
	term := e.termOf(pid)
	return term != 0 && e.hot.Owner.Load() == shm.PackOwner(pid, term)
}

// Term is the latest term, owned or not; 0 before the first claim.
func (e *Election) Term() uint64 {
	_, term := e.Owner()
	return term
}

// Token is the fencing token of the latest term.
func (e *Election) Token() uint64 { return uint64(e.TokenOf(e.Term())) }

// OwnTerm is the term in which this handle acts for pid, 0 if there is none.
func (e *Election) OwnTerm(pid uint32) uint64 { return e.termOf(pid) }

func (e *Election) termOf(pid uint32) uint64 {
	if p, term := shm.UnpackOwner(e.remembered.Load()); p == pid && pid != 0 {
		return term
	}
	return e.termOfOther(pid)
}

func (e *Election) termOfOther(pid uint32) uint64 {
	if e.hasOthers.Load() {
		e.mu.Lock()
		term, ok := e.others[pid]
		e.mu.Unlock()
		if ok {
			return term
		}
	}
	owner, term := e.Owner()
	if pid == 0 || owner != pid {
		return 0
	}
	e.remember(pid, term)
	return term
}

// remember keeps the term of pid: of the first pid in a word, so that the
// common case of one pid costs no locked instruction, of others beside it.
func (e *Election) remember(pid uint32, term uint64) {
	word := shm.PackOwner(pid, term)
	old := e.remembered.Load()
	if old == word {
		return
	}
	if e.first.Load() == pid || e.first.CompareAndSwap(0, pid) {
		e.remembered.Store(word)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.others == nil {
		e.others = map[uint32]uint64{}
	}
	e.others[pid] = term
	e.hasOthers.Store(true)
}

// rememberFirst remembers what was won for a pid that is not, or not yet, the
// first.
func (e *Election) rememberFirst(owner uint64) (term uint64, err error) {
	pid, term := shm.UnpackOwner(owner)
	e.remember(pid, term)
	return term, nil
}

func (e *Election) forget(pid uint32) {
	if e.first.Load() == pid {
		e.remembered.Store(0)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.others, pid)
}
