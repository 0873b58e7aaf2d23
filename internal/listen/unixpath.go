//go:build unix

package listen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// clearStale removes a socket file on which nobody listens. A live one is
// ErrTaken; a file of another kind is never touched.
func clearStale(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("a file that is no socket is in the way (%v)", fi.Mode())
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
			return err
		}
		return nil
	case nil, unix.EPROTOTYPE:
		return fmt.Errorf("%w: a live socket is at the path", ErrTaken)
	case unix.ENOENT:
		return nil
	default:
		return fmt.Errorf("look who listens: %w", err)
	}
}

// Lost tells whether the path of a Unix socket leads to it no more: it was
// removed or replaced, and nobody can connect there. False for one that was
// lent: its path is not ours to look after.
func (h *Held) Lost() bool {
	if h.own == nil {
		return h.gone
	}
	now, err := os.Lstat(h.addr.String())
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, h.own)
}

// removeOwn removes the path of a Unix socket, if the file there is still the
// one that was there when the socket became ours.
func (h *Held) removeOwn() error {
	if h.own == nil {
		return nil
	}
	path := h.addr.String()
	if fi, err := os.Lstat(path); err != nil || !os.SameFile(fi, h.own) ||
		!fi.ModTime().Equal(h.own.ModTime()) { // a removed file's number is soon given to a new one
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket: %w", err)
	}
	return nil
}
