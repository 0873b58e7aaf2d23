package election

import "github.com/standbyd/standbyd/coord/role"

// Reason codes of the ring. They are in files and append-only.
var reasonCodes = [...]role.Reason{
	0: "",
	1: role.ReasonFirst,
	2: role.ReasonCrash,
	3: role.ReasonHang,
	4: role.ReasonStepDown,
	5: role.ReasonPreempt,
}

func reasonCode(r role.Reason) uint64 {
	for i, known := range reasonCodes {
		if known == r {
			return uint64(i)
		}
	}
	return 0
}

func reasonOf(code uint64) role.Reason {
	if code < uint64(len(reasonCodes)) {
		return reasonCodes[code]
	}
	return ""
}
