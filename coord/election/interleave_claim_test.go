//go:build interleave

package election

import "testing"

// Two claimants in all orders, with ticks of anybody between any two steps.
func TestInterleaveTwoClaimants(t *testing.T) {
	k := walk{preemptions: -1}
	k.none(t, func(w *world) {
		w.add(1, claimer(Attempt{}, 1))
		w.add(2, claimer(Attempt{}, 1))
		w.add(90, ticks(2)).free = true
	})
}
