//go:build linux

package capture

import "golang.org/x/sys/unix"

// enlarge is best effort: an unprivileged user's pipes have a common limit.
func enlarge(fd int) { unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, fifoBytes) }
