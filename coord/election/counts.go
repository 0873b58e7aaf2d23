package election

import "github.com/standbyd/standbyd/coord/shm"

// Counts is what was done through one handle. What succeeds and changes
// nothing (a check, a claim by the owner in its term, a beat in an epoch
// already beaten) is not counted: that would cost more than the operation.
type Counts struct {
	Claims, ClaimsRefused, ClaimsFailed uint64 // granted with a new term; ErrHeld; other errors
	Releases, ReleasesRefused           uint64 // ErrNotOwner
	Beats, BeatsRefused                 uint64 // the first of each epoch; ErrLost, ErrNotOwner
}

// Counts begin at 0 with the handle. They cost no locked instruction, so one
// may be missed when several goroutines use the handle at the same moment.
func (e *Election) Counts() Counts {
	c := &e.count
	return Counts{
		Claims: c.claims.Load(), ClaimsRefused: c.claimsRefused.Load(), ClaimsFailed: c.claimsFailed.Load(),
		Releases: c.releases.Load(), ReleasesRefused: c.releasesRefused.Load(),
		Beats: c.beats.Load(), BeatsRefused: c.beatsRefused.Load(),
	}
}

type counters struct {
	_                                   [128]byte // others read the rest of the handle
	claims, claimsRefused, claimsFailed shm.LocalWord
	releases, releasesRefused           shm.LocalWord
	beats, beatsRefused                 shm.LocalWord
}

// increment is not atomic as a whole: see Counts.
func increment(w *shm.LocalWord) { w.Store(w.Load() + 1) }

// tally counts one attempt.
func (e *Election) tally(g Grant, why Why, err error) {
	switch {
	case why != 0:
		increment(&e.count.claimsRefused)
	case err != nil:
		increment(&e.count.claimsFailed)
	case g.Reason != "":
		increment(&e.count.claims)
	}
}
