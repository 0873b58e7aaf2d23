//go:build linux

package stage

import (
	"strconv"
	"syscall"
)

// What syscall has no name for: prctl(2), close_range(2). Where close_range has
// another number (mips) the call fails, and the slow way is taken.
const (
	prSetNoNewPrivs   = 38
	sysCloseRange     = 436
	closeRangeCloexec = 4
	lastFD            = 1<<32 - 1
)

func setOOMScoreAdj(n int) error {
	fd, err := syscall.Open("/proc/self/oom_score_adj", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.Write(fd, []byte(strconv.Itoa(n)))
	return err
}

func setNoNewPrivs() error {
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); err != 0 {
		return err
	}
	return nil
}

// closeOthersOnExec marks everything from fd on, also what this process's
// parents left open by mistake.
func closeOthersOnExec(fd int) {
	if _, _, err := syscall.RawSyscall(sysCloseRange, uintptr(fd), lastFD, closeRangeCloexec); err != 0 {
		markOnExec(fd)
	}
}
