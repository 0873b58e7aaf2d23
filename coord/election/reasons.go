package election

import "github.com/standbyd/standbyd/coord/role"

// cause is a reason as the ring holds it. The numbers are in files and
// append-only.
type cause uint8

const (
	causeNone     cause = 0
	causeFirst    cause = 1
	causeCrash    cause = 2
	causeHang     cause = 3
	causeStepDown cause = 4
	causePreempt  cause = 5
	causePlanned  cause = 6
	causeDying    cause = 7 // taken at a hint that its owner dies
)

var reasons = [...]role.Reason{
	causeNone:     "",
	causeFirst:    role.ReasonFirst,
	causeCrash:    role.ReasonCrash,
	causeHang:     role.ReasonHang,
	causeStepDown: role.ReasonStepDown,
	causePreempt:  role.ReasonPreempt,
	causePlanned:  role.ReasonSwitchover,
	causeDying:    role.ReasonCrash,
}

func reasonOf(code uint64) role.Reason {
	if code < uint64(len(reasons)) {
		return reasons[code]
	}
	return ""
}
