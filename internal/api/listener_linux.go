//go:build linux

package api

import (
	"net"

	"golang.org/x/sys/unix"
)

// listenerOf is the pid of the process that listens at the other end of a
// connection, as the kernel noted it at listen(2); 0 if it cannot be told.
func listenerOf(c net.Conn) (pid int) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0
	}
	raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}
