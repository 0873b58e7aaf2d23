//go:build darwin || freebsd

package api

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel who connected. Option 1 of level 0 is LOCAL_PEERCRED
// of unix sockets on both systems.
func peerOf(c *net.UnixConn) (p peer) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{err: err}
	}
	cerr := raw.Control(func(fd uintptr) {
		var cred *unix.Xucred
		if cred, err = unix.GetsockoptXucred(int(fd), 0, 1); err != nil {
			return
		}
		if cred.Ngroups < 1 {
			err = errors.New("the kernel names no group of it")
			return
		}
		p.uid, p.gid = int(cred.Uid), int(cred.Groups[0])
	})
	if err == nil {
		err = cerr
	}
	p.err = err
	return p
}
