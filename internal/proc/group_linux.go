//go:build linux

package proc

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// GroupGone reports whether no process but dead ones is in the process group.
// A group's number is not given to another one while it has members; zombies
// are members that some machines never reap.
func GroupGone(group int) bool {
	if unix.Kill(-group, 0) == unix.ESRCH {
		return true
	}
	// A child that is forked while we look can have a number that we passed:
	// its parent was seen, or ended since, and then the second look sees it.
	for range 2 {
		if inGroup(group) {
			return false
		}
	}
	return true
}

func inGroup(group int) bool {
	pids, err := PIDs()
	if err != nil {
		return true
	}
	for _, pid := range pids {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // gone meanwhile
		}
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		// state, parent, group
		if len(f) >= 3 && string(f[2]) == strconv.Itoa(group) && f[0][0] != 'Z' && f[0][0] != 'X' {
			return true
		}
	}
	return false
}
