//go:build unix && !linux

package filelease

import "golang.org/x/sys/unix"

func groupGone(group int) bool { return unix.Kill(-group, 0) == unix.ESRCH }
