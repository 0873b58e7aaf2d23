package election

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// Promotion is what the owner of a term needs to become its active leader.
// What is zero is taken from the segment's header, Fence and Proof always.
type Promotion struct {
	PID  uint32
	Term uint64
	// Ask gives a predecessor that is healthy (the lease was taken by policy)
	// the segment's drain limit to stop by itself before it is killed.
	Ask bool
	// Known says what the caller has of the process that was granted the lease
	// in (pid, term), which the active word names: a handle that it has held on
	// it, which stays its own, or nil; and whether it is proven dead already, as
	// surely as the segment asks. So that process is not looked for again. The
	// term is its very own, so no other process with its pid can be meant. nil
	// knows nothing.
	Known func(pid uint32, term uint64) (h *proc.Handle, dead bool)
	// Changed is received from whenever the words may have changed, so that
	// the wait ends at once; nil is allowed.
	Changed <-chan struct{}
	// Waiting is told whose death must be proven, before it is waited for; nil
	// is allowed.
	Waiting func(predecessor proc.Identity)
	// Replaced is told the term that the active word held before, and what
	// its leader had in flight, once (PID, Term) is published; nil is allowed.
	Replaced func(term, inFlight uint64)
}

// Promote publishes (PID, Term) in the active word after whoever it named
// before has retired or is proven dead: the fencing that makes two overlapping
// leaders impossible. The caller owns the lease in Term, its own earlier lead
// has returned, and it leads only if the error is nil. Otherwise it releases:
//
//   - ErrLost: the lease was taken meanwhile;
//   - ErrFenced: a later term has published already;
//   - ErrForbidden: the control word says closed or held;
//   - ErrFenceTimeout: no proof of the predecessor's death within the fence limit;
//   - the context's error.
//
// Safety does not rest on the owner word: whoever the active word names is the
// only one that can be between publishing and stopping, and the word changes
// only after that one is dead or has retired. So a claimant that dies or hangs
// in here harms nobody. A kill that comes late may hit one that has just
// retired: that costs a failover, never two leaders.
func (e *Election) Promote(ctx context.Context, p Promotion) error {
	s := e.seg
	if !valid(p.PID) {
		return fmt.Errorf("lead as pid %d: %w", p.PID, ErrInvalidPID)
	}
	mine := shm.PackOwner(p.PID, p.Term)
	deadline := time.Now().Add(s.Params().FenceLimit)
	for {
		// P1
		pause(pointPublishActive)
		active := s.Active.Load()
		pid, term := shm.UnpackOwner(active)
		if active == mine {
			// Published before; the lease may have been lost since.
			if s.Owner.Load() != mine {
				return fmt.Errorf("lead in term %d again: %w", p.Term, ErrLost)
			}
			return nil
		}
		if term >= p.Term {
			return fmt.Errorf("lead in term %d: term %d has led: %w", p.Term, term, ErrFenced)
		}
		// P2
		if pid != 0 && pid != p.PID && s.Params().Fence != shm.FenceToken {
			pause(pointFence)
			var dead bool
			if p.Known != nil {
				_, dead = p.Known(pid, term)
			}
			if !dead {
				changed, err := e.fence(ctx, p, active, deadline)
				if err != nil {
					return err
				}
				if changed {
					continue
				}
			}
			if s.Params().Fence == shm.FenceTree {
				if err := e.fell(ctx, p, pid, deadline); err != nil {
					return err
				}
			}
		}
		pause(pointPublishControl)
		if e.forbidsLeading(p.PID) {
			return fmt.Errorf("lead in term %d: the role is %v: %w", p.Term, e.Control().State, ErrForbidden)
		}
		// The predecessor has stopped: what its seat says is final, until the
		// active word names it no more.
		if pid != 0 {
			s.KeepInFlight(pid, term)
		}
		before := e.inFlight(term)
		fenced := shm.MonoNow()
		// P3
		pause(pointPublish)
		if !s.Active.CompareAndSwap(active, mine) {
			continue
		}
		// P4
		pause(pointPublishOwner)
		if s.Owner.Load() != mine {
			e.inherit(p.Term, before)
			pause(pointPublishBack)
			s.Active.CompareAndSwap(mine, shm.PackOwner(0, p.Term))
			return fmt.Errorf("lead in term %d: %w", p.Term, ErrLost)
		}
		if r := e.entry(p.Term); r != nil {
			if s.Params().Fence != shm.FenceToken {
				r.FencedAt.Store(uint64(fenced))
			}
			r.ActiveAt.Store(uint64(shm.MonoNow()))
		}
		if p.Replaced != nil {
			p.Replaced(term, before)
		}
		return nil
	}
}

// inFlight is what the leader of term had in flight at its end, 0 if that is
// not known.
func (e *Election) inFlight(term uint64) uint64 {
	r, _ := e.Entry(term)
	return r.InFlight
}

// inherit passes on, through a term that was published and lost before it led,
// what its predecessor left.
func (e *Election) inherit(term, inFlight uint64) {
	if r := e.entry(term); r != nil {
		r.InFlight.Store(inFlight)
	}
}

// judgeEvery is the shortest pause between two looks at a predecessor that is
// given time to stop.
const judgeEvery = 100 * time.Microsecond

// pauseAfterKill is how long to wait for a process that was killed so long ago
// before the next look at it. Its handle ends the wait when it is gone; nothing
// tells when it is exiting, or when a word changed meanwhile.
func pauseAfterKill(ago time.Duration) time.Duration {
	return min(max(ago/8, 30*time.Microsecond), 2*time.Millisecond)
}

// stop makes whoever active names stop, and returns when that is proven, or
// when the active word has changed.
func (e *Election) stop(ctx context.Context, p Promotion, active uint64, deadline time.Time) (changed bool, err error) {
	s := e.seg
	pid, term := shm.UnpackOwner(active)
	moved := func() bool { return s.Active.Load() != active }
	id, known := e.identity(pid)
	if known && p.Waiting != nil {
		p.Waiting(id)
	}
	var handle *proc.Handle
	if p.Known != nil {
		handle, _ = p.Known(pid, term)
	}
	if known && handle == nil {
		h, err := proc.OpenHandle(id)
		switch {
		case err == nil:
			handle = h
			defer h.Close()
		case proc.Judge(id) == proc.Gone:
			return false, nil
		}
		// One that cannot be held, in another pid namespace say, may still
		// retire before the limit.
	}
	killAt := time.Now()
	if p.Ask {
		killAt = killAt.Add(s.Params().DrainLimit)
		deadline = deadline.Add(s.Params().DrainLimit)
	}
	killed := false
	var killedAt time.Time
	var gone <-chan struct{}
	if handle != nil {
		gone = handle.Done()
	}
	for {
		if s.Owner.Load() != shm.PackOwner(p.PID, p.Term) {
			return false, fmt.Errorf("fence pid %d before term %d: %w", pid, p.Term, ErrLost)
		}
		if moved() {
			return true, nil
		}
		now := time.Now()
		if handle != nil && !killed && !now.Before(killAt) {
			if !handle.Gone() {
				if err := handle.Signal(syscall.SIGKILL); err != nil && handle.Judge() == proc.Alive {
					return false, fmt.Errorf("fence pid %d of term %d: %w", pid, term, err)
				}
			}
			killed, killedAt = true, now
			if s.Params().Proof == shm.ProofGone {
				handle.FreeMemory()
			}
		}
		if handle != nil && e.provenBy(handle) || handle == nil && known && e.proven(proc.Judge(id)) {
			return false, nil
		}
		if !now.Before(deadline) {
			return false, fmt.Errorf("fence pid %d of term %d: still not proven dead after %v: %w", pid, term, s.Params().FenceLimit, ErrFenceTimeout)
		}
		if killed {
			if err := context.Cause(ctx); err != nil {
				return false, fmt.Errorf("fence pid %d before term %d: %w", pid, p.Term, err)
			}
			handle.Pause(pauseAfterKill(time.Since(killedAt)))
			continue
		}
		wait := s.Params().Tick
		if p.Ask {
			wait = min(wait, max(time.Until(killAt), judgeEvery))
		}
		timer := time.NewTimer(min(wait, max(time.Until(deadline), judgeEvery)))
		select {
		case <-gone:
		case <-p.Changed:
		case <-timer.C:
		case <-ctx.Done():
			err = fmt.Errorf("fence pid %d before term %d: %w", pid, p.Term, context.Cause(ctx))
		}
		timer.Stop()
		if err != nil {
			return false, err
		}
	}
}

// proven reports whether the verdict is what the segment asks for.
func (e *Election) proven(v proc.Verdict) bool {
	return v == proc.Gone || v == proc.Exiting && e.seg.Params().Proof == shm.ProofExiting
}

// provenBy looks through a handle, for no more than the segment asks.
func (e *Election) provenBy(h *proc.Handle) bool {
	return h.Gone() || e.seg.Params().Proof == shm.ProofExiting && h.Judge() != proc.Alive
}

// Dead is the proof that strict claims use: pid's seat names a process that is
// proven dead, as surely as the segment asks. A pid without a seat, or one that
// cannot be seen from here, is alive.
func (e *Election) Dead(pid uint32) bool {
	id, ok := e.identity(pid)
	return ok && e.proven(proc.Judge(id))
}

// identity reads who has joined with pid, consistently.
func (e *Election) identity(pid uint32) (proc.Identity, bool) {
	i := e.seg.SeatOf(pid)
	if i < 0 {
		return proc.Identity{}, false
	}
	w := &e.seg.Seats[i]
	before := w.Phase.Load()
	id := proc.Identity{PID: int(w.PID.Load()), Start: w.Start.Load(), Boot: w.Boot.Load(), PIDNS: w.PIDNS.Load()}
	phase := shm.UnpackPhase(before)
	return id, phase.Phase == shm.PhaseJoined && phase.PID == pid && id.PID == int(pid) && w.Phase.Load() == before
}

// Retire takes (pid, term) out of the active word, after its lead has returned
// and before it releases the lease. ErrFenced if it is not named there.
func (e *Election) Retire(pid uint32, term uint64) error {
	err := e.retire(pid, term)
	if err == nil {
		pause(pointRetireWake)
		e.seg.WakeAll()
	}
	return err
}

// HandOver is Retire and Release in one: whoever waits for the lease is woken
// once, and finds both done. A nominee that is to follow as planned is woken
// alone, so that it has the machine for itself; the others, who may not claim,
// hear of it from the next leader, or with the next epoch. planned says that.
func (e *Election) HandOver(pid uint32, term uint64) (planned bool) {
	retired, released := e.retire(pid, term), e.release(pid, term)
	if retired != nil && released != nil {
		return false // others have taken both, and said so
	}
	pause(pointReleaseWake)
	if c := e.Control(); c.Planned && c.ResignTerm == term && c.Nominee >= 0 && c.Nominee < len(e.seg.Seats) {
		e.seg.WakeSeatUrgent(c.Nominee)
		return true
	}
	e.seg.WakeAll()
	return false
}

func (e *Election) retire(pid uint32, term uint64) error {
	if r := e.seg.Ring(term); r.Term.Load() == term && e.seg.Active.Load() == shm.PackOwner(pid, term) {
		r.RetiredAt.Store(uint64(shm.MonoNow()))
	}
	if e.seg.Active.Load() == shm.PackOwner(pid, term) {
		e.seg.KeepInFlight(pid, term)
	}
	pause(pointRetire)
	if !valid(pid) || !e.seg.Active.CompareAndSwap(shm.PackOwner(pid, term), shm.PackOwner(0, term)) {
		return ErrFenced
	}
	return nil
}
