//go:build unix && !linux

package host

import "syscall"

func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit does not wait here: the death is seen by reaping.
func awaitExit(int) bool { return false }
