package lease

// A point is a place between two accesses to shared words, at which a process
// can be stopped or die. Each is named after the step that comes next; built
// with the tag interleave, a test decides there who goes on. Without it they
// are nothing.
type point uint8

const (
	pointReadCommit point = iota
	pointReadCell
	pointReadAgain
	pointReadOwner
	pointWriteOwner
	pointLookCommit
	pointLookOwner
	pointLookSlot
	pointLookAgain
	pointFill
	pointPublish
	pointPublishLoad
	pointPublishAgain
	numPoints
)
