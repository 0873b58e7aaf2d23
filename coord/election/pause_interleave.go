//go:build interleave

package election

import (
	"context"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

// The hooks are set by tests before any other goroutine runs. fenceHook stands
// in for step P2, which needs real processes; clockHook for CLOCK_MONOTONIC.
var (
	pauseHook func(point)
	clockHook func() int64
	fenceHook func(e *Election, p Promotion, active uint64) (changed bool, err error)
)

func pause(p point) {
	if pauseHook != nil {
		pauseHook(p)
	}
}

func monoNow() int64 {
	if clockHook != nil {
		return clockHook()
	}
	return shm.MonoNow()
}

func (e *Election) fence(ctx context.Context, p Promotion, active uint64, deadline time.Time) (changed bool, err error) {
	if fenceHook != nil {
		return fenceHook(e, p, active)
	}
	return e.stop(ctx, p, active, deadline)
}

var pointNames = [numPoints]string{
	pointNone:            "begin",
	pointClaimEpoch:      "claim: load the epoch",
	pointClaimOwner:      "claim: load the owner word",
	pointClaimBeat:       "claim: load the heartbeat",
	pointClaimControl:    "claim: load the control word",
	pointClaimProof:      "claim: judge the owner",
	pointClaimPrepare:    "claim: load the coming term's heartbeat",
	pointClaimPrepareCAS: "claim: swap the coming term's heartbeat",
	pointClaimCommit:     "claim: load the commit word",
	pointClaimSeal:       "claim: seal the stale heartbeat",
	pointClaimTake:       "claim: swap the owner word",
	pointClaimAdopt:      "claim: swap the commit word",
	pointClaimAdoptAgain: "claim: load the commit word again",
	pointClaimAdoptOwner: "claim: look at the owner word again",
	pointClaimRecord:     "claim: write the ring",
	pointClaimUnseal:     "claim: give up the sealed term",
	pointBeatOwner:       "beat: load the owner word",
	pointBeatEpoch:       "beat: load the epoch",
	pointBeatWord:        "beat: load the heartbeat",
	pointBeat:            "beat: swap the heartbeat",
	pointRelease:         "release: swap the owner word",
	pointReleaseWake:     "release: wake",
	pointEvictOwner:      "evict: load the owner word",
	pointEvictProof:      "evict: prove",
	pointEvict:           "evict: swap the owner word",
	pointEvictWake:       "evict: wake",
	pointTickEpoch:       "tick: load the epoch",
	pointTickLast:        "tick: load ticked_at",
	pointTickClock:       "tick: read the clock",
	pointTickTake:        "tick: swap ticked_at",
	pointTickForgive:     "tick: forgive",
	pointTickAdvance:     "tick: swap the epoch",
	pointTickJudge:       "tick: judge the owner",
	pointPublishActive:   "promote: load the active word",
	pointFence:           "promote: fence who is active",
	pointPublishControl:  "promote: load the control word",
	pointPublish:         "promote: swap the active word",
	pointPublishOwner:    "promote: look at the owner word",
	pointPublishBack:     "promote: take the active word back",
	pointRetire:          "retire: swap the active word",
	pointRetireWake:      "retire: wake",
}

func (p point) String() string { return pointNames[p] }
