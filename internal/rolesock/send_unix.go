//go:build unix

package rolesock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/sockpath"
)

// Send sends one datagram to the socket at path ('@' first: an abstract one,
// as in NOTIFY_SOCKET) and never blocks. The files stay the caller's, and
// their descriptors are left in the mode that they are in. ErrNobody and
// ErrFull say why it did not arrive. Safe for concurrent use.
func Send(path, state string, files []*os.File) error {
	if err := sockpath.Check(path); err != nil {
		return fmt.Errorf("send: %w: choose a shorter runtime folder", err)
	}
	if len(state) > MaxState || len(files) > MaxFiles {
		return fmt.Errorf("send to %s: %d bytes and %d files are more than the %d and %d that fit", path, len(state), len(files), MaxState, MaxFiles)
	}
	err := withFDs(files, nil, func(fds []int) error { return send(path, state, fds) })
	switch {
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOENT):
		err = ErrNobody
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS):
		err = ErrFull
	}
	if err != nil {
		return fmt.Errorf("send to %s: %w", path, err)
	}
	return nil
}

func send(path, state string, fds []int) error {
	s, err := datagramSocket()
	if err != nil {
		return err
	}
	defer unix.Close(s)
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		err = unix.Sendmsg(s, []byte(state), rights, &unix.SockaddrUnix{Name: path}, unix.MSG_DONTWAIT)
		if err != unix.EINTR {
			return err
		}
	}
}

// withFDs holds every file open while f uses the descriptors. It goes through
// SyscallConn, because File.Fd can turn a shared descriptor to blocking mode.
func withFDs(files []*os.File, fds []int, f func([]int) error) error {
	if len(files) == 0 {
		return f(fds)
	}
	conn, err := files[0].SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) { inner = withFDs(files[1:], append(fds, int(fd)), f) })
	if err != nil {
		return err
	}
	return inner
}
