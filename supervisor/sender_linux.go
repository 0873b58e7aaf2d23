package supervisor

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// lineOf is a process, those above it, and the leader of its group: whose it
// is. Of one that has ended already only its own number is known.
func lineOf(pid int) []int {
	if pid <= 0 {
		return nil
	}
	line := ancestors(pid)
	line[pid] = true
	if group, err := unix.Getpgid(pid); err == nil {
		line[group] = true
	}
	return slices.Sorted(maps.Keys(line))
}
