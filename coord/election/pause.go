//go:build !interleave

package election

// Named points between two steps of the protocol, at which a test can stop a
// process. Built without the tag interleave they are nothing.
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

func pause(int) {}
