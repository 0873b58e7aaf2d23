//go:build !linux

package api

import "net"

// bindPrivate relies on the runtime folder, which only its owner may enter,
// until Listen has set the socket's mode.
func bindPrivate(path string) (*net.UnixListener, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}
