package election

// A point is a place between two accesses of the protocol to shared words, at
// which a process can be stopped or die. Each is named after the step that
// comes next; built with the tag interleave, a test decides there who goes on.
// Without it they are nothing.
type point uint8

const (
	pointNone point = iota
	pointClaimEpoch
	pointClaimOwner
	pointClaimBeat
	pointClaimControl
	pointClaimProof
	pointClaimPrepare
	pointClaimPrepareCAS
	pointClaimCommit
	pointClaimSeal
	pointClaimTake
	pointClaimAdopt
	pointClaimAdoptAgain
	pointClaimAdoptOwner
	pointClaimRecord
	pointClaimUnseal
	pointBeatOwner
	pointBeatEpoch
	pointBeatWord
	pointBeat
	pointRelease
	pointReleaseWake
	pointEvictOwner
	pointEvictProof
	pointEvict
	pointEvictWake
	pointTickEpoch
	pointTickLast
	pointTickClock
	pointTickTake
	pointTickForgive
	pointTickAdvance
	pointTickJudge
	pointPublishActive
	pointFence
	pointPublishControl
	pointPublish
	pointPublishOwner
	pointPublishBack
	pointRetire
	pointRetireWake
	numPoints
)
