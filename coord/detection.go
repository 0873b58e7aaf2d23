package coord

import "strings"

// detection is the ways in which a member notices that the owner has ended.
// Each is enough; a member uses all that the system has, and what is missing
// leaves the next one to lead.
type detection struct {
	robust bool // the kernel wakes it when the owner's robust thread ends
	pidfd  bool // the runtime's poller wakes it when the owner's process is gone
	tick   bool // it looks at each tick
}

// detectionOf reads STANDBYD_DETECT, for tests and for machines on which one
// way misbehaves. Empty is all ways.
func detectionOf(s string) (detection, error) {
	if s == "" {
		return detection{true, true, true}, nil
	}
	var d detection
	for way := range strings.SplitSeq(s, ",") {
		switch way {
		case "robust":
			d.robust = true
		case "pidfd":
			d.pidfd = true
		case "tick":
			d.tick = true
		default:
			return d, badVariable(envDetect, s, `want some of robust, pidfd and tick, with commas between`)
		}
	}
	return d, nil
}
