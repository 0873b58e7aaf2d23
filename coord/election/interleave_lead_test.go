//go:build interleave

package election

import (
	"context"
	"testing"

	"github.com/standbyd/standbyd/coord/shm"
)

// R8: leaders never overlap, whoever takes the lease from whom, whoever is
// killed in the middle, and however late.
func TestInterleaveTwoLeaders(t *testing.T) {
	k := walk{preemptions: every, deaths: 1}
	k.none(t, func(w *world) {
		w.sticky, w.fenced = false, true
		w.add(1, leads(LowestPID))
		w.add(2, leads(LowestPID))
	})
}

// R8: a leader that hangs is killed, by whoever gets its lease.
func TestInterleaveHungLeader(t *testing.T) {
	k := walk{preemptions: every, deaths: 1}
	k.none(t, func(w *world) {
		w.sticky, w.fenced = false, true
		w.acts(w.add(9, hangs))
		w.add(1, leads(LowestPID))
		w.add(2, leads(LowestPID))
	})
}

func TestInterleaveThreeLeaders(t *testing.T) {
	k := walk{preemptions: every}
	k.none(t, func(w *world) {
		w.plain = true
		w.sticky, w.fenced = false, true
		w.add(1, leads(LowestPID))
		w.add(2, leads(LowestPID))
		w.add(3, leads(LowestPID))
	})
}

// R10: after the role was closed, and nobody was seen to own and then nobody to
// act, nobody leads.
func TestInterleaveClosed(t *testing.T) {
	k := walk{preemptions: every}
	k.none(t, func(w *world) {
		w.sticky, w.fenced = false, true
		w.add(1, leads(LowestPID))
		w.add(2, leads(LowestPID))
		w.add(91, closes).free = true
	})
}

// A promotion that stores the active word instead of swapping it (plain), or
// does not look at the control word before it does (blind).
func promoteWrongly(plain, blind bool) func(*Election, context.Context, Promotion) error {
	return func(e *Election, _ context.Context, p Promotion) error {
		s := e.seg
		mine := shm.PackOwner(p.PID, p.Term)
		for {
			pause(pointPublishActive)
			active := s.Active.Load()
			pid, term := shm.UnpackOwner(active)
			if term >= p.Term {
				return ErrFenced
			}
			if pid != 0 && pid != p.PID {
				changed, err := fenceHook(e, p, active)
				if err != nil {
					return err
				}
				if changed {
					continue
				}
			}
			pause(pointPublishControl)
			if !blind && e.Control().State == ControlClosed {
				return ErrForbidden
			}
			pause(pointPublish)
			switch {
			case !plain:
				if !s.Active.CompareAndSwap(active, mine) {
					continue
				}
			case s.Active.Load() != active:
				continue
			default:
				pause(pointNone)
				s.Active.Store(mine)
			}
			pause(pointPublishOwner)
			if s.Owner.Load() != mine {
				return ErrLost
			}
			return nil
		}
	}
}

func TestInterleaveFindsAPlainStoreOfTheActiveWord(t *testing.T) {
	k := walk{preemptions: every}
	k.some(t, func(w *world) {
		w.sticky, w.fenced = false, true
		w.add(1, leadsBy(LowestPID, promoteWrongly(true, false)))
		w.add(2, leadsBy(LowestPID, promoteWrongly(true, false)))
	})
}

func TestInterleaveFindsThatClosedIsNotLookedAtAgain(t *testing.T) {
	k := walk{preemptions: every}
	k.some(t, func(w *world) {
		w.sticky, w.fenced = false, true
		w.add(1, leadsBy(LowestPID, promoteWrongly(false, true)))
		w.add(91, closes).free = true
	})
}
