//go:build linux

package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Tree lists what is left of the processes that a dead one started: members of
// its process group, and processes whose environment holds every one of marks
// ("NAME=value", as they were at the exec of some ancestor). The process
// itself, the caller, and what has ended are left out. A process that another
// user owns, or that replaced its whole environment and left the group, is not
// found. ok is false if the process table could not be read.
func Tree(group int, marks []string) (found []Identity, ok bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	me := os.Getpid()
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == me || pid == group || !inTree(pid, group, marks) {
			continue
		}
		if id, err := Of(pid); err == nil && Judge(id) != Gone {
			found = append(found, id)
		}
	}
	return found, true
}

func inTree(pid, group int, marks []string) bool {
	if g, err := unix.Getpgid(pid); err == nil && g == group {
		return true
	}
	if len(marks) == 0 {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	vars := bytes.Split(b, []byte{0})
	for _, m := range marks {
		if !slices.ContainsFunc(vars, func(v []byte) bool { return string(v) == m }) {
			return false
		}
	}
	return true
}
