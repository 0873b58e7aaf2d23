//go:build linux

package api

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel who connected.
func peerOf(c *net.UnixConn) (p peer) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{err: err}
	}
	cerr := raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			p.uid, p.gid = int(cred.Uid), int(cred.Gid)
		}
	})
	if err == nil {
		err = cerr
	}
	p.err = err
	return p
}
