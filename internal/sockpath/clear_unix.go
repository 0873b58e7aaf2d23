//go:build unix

package sockpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrLive can be returned by Clear: somebody listens there.
var ErrLive = errors.New("a live socket is at the path")

// Clear makes room for a socket at path: one that a crashed process left there
// is removed, one that somebody listens on is ErrLive, of whatever type it is,
// and a file of another kind is an error. Two that call it for one path at the
// same moment may both succeed.
func Clear(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("a file that is no socket is in the way (%v): move it away or choose another path", fi.Mode())
	}
	// A datagram socket cannot connect to a stream socket, so that asking puts
	// no connection into the queue of one that lives.
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err {
	case unix.ECONNREFUSED:
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what a crash left there: %w", err)
		}
		return nil
	case nil, unix.EPROTOTYPE:
		return ErrLive
	case unix.ENOENT:
		return nil
	default:
		return fmt.Errorf("cannot tell whether somebody listens there: %w", err)
	}
}
