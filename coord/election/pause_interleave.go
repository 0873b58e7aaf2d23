//go:build interleave

package election

const (
	pointClaimEpoch = iota
	pointClaimBeat
	pointClaimSeal
	pointClaimOwner
	pointClaimAdopt
	pointBeat
	pointEvict
	pointTick
	pointPublish
)

// pauseHook is set by tests before any other goroutine runs.
var pauseHook func(point int)

func pause(point int) {
	if pauseHook != nil {
		pauseHook(point)
	}
}
