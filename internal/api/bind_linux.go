//go:build linux

package api

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// bindPrivate binds a socket that is never open to others, not even for a
// moment: on Linux the path gets the mode that the socket has before bind.
func bindPrivate(path string) (*net.UnixListener, error) {
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var failed error
		if err := conn.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), 0o600) }); err != nil {
			return err
		}
		return failed
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}
