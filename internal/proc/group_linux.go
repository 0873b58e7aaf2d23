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
	d, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return true
	}
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		b, err := os.ReadFile("/proc/" + name + "/stat")
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
