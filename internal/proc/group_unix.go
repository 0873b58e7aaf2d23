//go:build unix && !linux

package proc

import "golang.org/x/sys/unix"

// GroupGone reports whether no process, not even a dead one, is in the process
// group.
func GroupGone(group int) bool { return unix.Kill(-group, 0) == unix.ESRCH }
