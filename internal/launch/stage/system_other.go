//go:build unix && !linux

package stage

import "syscall"

func setOOMScoreAdj(int) error { return syscall.ENOTSUP }

func setNoNewPrivs() error { return syscall.ENOTSUP }

func closeOthersOnExec(fd int) { markOnExec(fd) }
