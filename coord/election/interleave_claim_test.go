//go:build interleave

package election

import "testing"

const every = -1 // preemptions

// R1 to R4: two claimants in all orders, ticks of anybody among them.
func TestInterleaveTwoClaimants(t *testing.T) {
	k := walk{preemptions: every}
	k.none(t, func(w *world) {
		w.add(1, claims(Sticky, 1))
		w.add(2, claims(Sticky, 1))
		w.add(90, advances(2)).free = true
	})
}

// R1 to R5: and one of them dies anywhere.
func TestInterleaveTwoClaimantsAndADeath(t *testing.T) {
	k := walk{preemptions: every, deaths: 1}
	k.none(t, func(w *world) {
		w.add(1, claims(Sticky, 1))
		w.add(2, claims(Sticky, 1))
		w.add(90, advances(2)).free = true
	})
}

func TestInterleaveLowestPID(t *testing.T) {
	k := walk{preemptions: every, deaths: 1}
	k.none(t, func(w *world) {
		w.sticky = false
		w.add(1, claims(LowestPID, 1))
		w.add(2, claims(LowestPID, 1))
	})
}

// The classic verbs have short ways of their own.
func TestInterleaveClassicVerbs(t *testing.T) {
	k := walk{preemptions: every, deaths: 1}
	k.none(t, func(w *world) {
		w.sticky = false
		w.add(1, classic(1))
		w.add(2, classic(1))
		w.add(90, advances(2)).free = true
	})
}

// C3: a claim of the owner itself, healthy or sealed, beside one by staleness.
func TestInterleaveOwnClaim(t *testing.T) {
	k := walk{preemptions: every}
	k.none(t, func(w *world) {
		w.owns(w.add(1, keeps))
		w.add(2, claims(Sticky, 0))
		w.add(90, advances(2)).free = true
	})
}

// R5: a dead owner is evicted while its pid comes back to life and claims.
func TestInterleaveEvictAndRebirth(t *testing.T) {
	k := walk{preemptions: every, deaths: 1}
	k.none(t, func(w *world) {
		p := w.add(1, hangs)
		w.owns(p)
		w.add(1, reborn(p, claims(Sticky, 1))).unborn = true
		w.add(91, evicts).free = true
		w.add(2, claims(Sticky, 0))
	})
}

// R6: a publish of an earlier term never succeeds after a later claim has.
func TestInterleaveAdoption(t *testing.T) {
	k := walk{preemptions: every}
	k.none(t, func(w *world) {
		w.sticky = false
		w.add(2, publishes(LowestPID))
		w.add(1, publishes(LowestPID))
	})
}

// Three at once for a vacant lease, and one of them dies anywhere.
func TestInterleaveThreeClaimants(t *testing.T) {
	k := walk{preemptions: every, deaths: 1}
	k.none(t, func(w *world) {
		w.plain = true
		w.add(1, claims(Sticky, 0))
		w.add(2, claims(Sticky, 0))
		w.add(3, claims(Sticky, 0))
	})
}

// Two that find an owner stale which beats after all.
func TestInterleaveLateOwner(t *testing.T) {
	k := walk{preemptions: every}
	k.none(t, func(w *world) {
		w.plain = true
		w.owns(w.add(9, beats(1)))
		w.add(1, claims(Sticky, 1))
		w.add(2, claims(Sticky, 0))
		w.add(90, advances(2)).free = true
	})
}

// Three that claim, beat and release while the epoch goes on, in all orders
// that need few preemptions.
func TestInterleaveThreeClaimantsInTime(t *testing.T) {
	k := walk{preemptions: 1}
	k.none(t, func(w *world) {
		w.plain = true
		w.add(1, claims(Sticky, 1))
		w.add(2, claims(Sticky, 1))
		w.add(3, claims(Sticky, 0))
		w.add(90, advances(2)).free = true
	})
}
