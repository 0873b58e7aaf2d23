//go:build unix && !linux

package proc

import (
	"errors"
	"syscall"
)

func absent(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
