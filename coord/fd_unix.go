//go:build unix

package coord

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// checkFD says whether a descriptor that the process was launched with is
// open. From then on, programs that this process starts do not inherit it.
func checkFD(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
		return errors.New("it is not open")
	}
	unix.CloseOnExec(fd)
	return nil
}

// checkSocket is checkFD for one that clients reach: it listens for
// connections, or takes datagrams.
func checkSocket(fd int) (packets bool, err error) {
	if err := checkFD(fd); err != nil {
		return false, err
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err == nil && kind == unix.SOCK_DGRAM {
		return true, nil
	}
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on == 0 {
		return false, errors.New("it is neither a listening socket nor one for datagrams")
	}
	return false, nil
}

// duplicate is a file of its own on the open file behind fd.
func duplicate(fd int, name string) (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, firstFD)
	if err != nil {
		return nil, fmt.Errorf("duplicate descriptor %d (%s): %w", fd, name, err)
	}
	return os.NewFile(uintptr(own), name), nil
}
