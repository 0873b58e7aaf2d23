//go:build linux

package api

import "golang.org/x/sys/unix"

// credentials are those of whoever is at the other end of a unix socket.
func credentials(fd int) (uid, gid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), int(cred.Gid), nil
}
