//go:build unix && !linux

package launch

import "syscall"

func setOOMScoreAdj(int) error { return syscall.ENOTSUP }

func setNoNewPrivs() error { return syscall.ENOTSUP }
