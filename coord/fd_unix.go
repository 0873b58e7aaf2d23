//go:build unix

package coord

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// checkFD says whether a descriptor that the process was launched with is
// open, and as a socket that listens if it should be. From then on, programs
// that this process starts do not inherit it.
func checkFD(fd int, listens bool) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
		return errors.New("it is not open")
	}
	if listens {
		if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on == 0 {
			return errors.New("it is not a listening socket")
		}
	}
	unix.CloseOnExec(fd)
	return nil
}

// duplicate is a file of its own on the open file behind fd.
func duplicate(fd int, name string) (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, firstFD)
	if err != nil {
		return nil, fmt.Errorf("duplicate descriptor %d (%s): %w", fd, name, err)
	}
	return os.NewFile(uintptr(own), name), nil
}
