//go:build darwin || freebsd

package api

import (
	"errors"

	"golang.org/x/sys/unix"
)

// credentials are those of whoever is at the other end of a unix socket. Option
// 1 of level 0 is LOCAL_PEERCRED of such sockets on both systems.
func credentials(fd int) (uid, gid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, 0, 1)
	switch {
	case err != nil:
		return 0, 0, err
	case cred.Ngroups < 1:
		return 0, 0, errors.New("the kernel names no group of it")
	}
	return int(cred.Uid), int(cred.Groups[0]), nil
}
