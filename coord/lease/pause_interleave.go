//go:build interleave

package lease

// NumPoints is how many points there are, and PauseHook what is called at each.
// Tests set it before any other goroutine runs.
const NumPoints = int(numPoints)

var PauseHook func(point int)

// PointNames are the points in words.
var PointNames = [NumPoints]string{
	pointReadCommit:   "read: load the commit word",
	pointReadCell:     "read: copy the cell",
	pointReadAgain:    "read: load the commit word again",
	pointReadOwner:    "read: look at the owner word",
	pointWriteOwner:   "write: look at the owner word",
	pointLookCommit:   "write: load the commit word",
	pointLookOwner:    "write: look at the owner word again",
	pointLookSlot:     "write: take a slot",
	pointLookAgain:    "write: load the commit word again",
	pointFill:         "write: fill the cell",
	pointPublish:      "write: swap the commit word",
	pointPublishLoad:  "publish: load the commit word",
	pointPublishAgain: "publish: swap the commit word",
}

func pause(p point) {
	if PauseHook != nil {
		PauseHook(int(p))
	}
}
