// Package sockpath has what every Unix socket asks of its path: that it fits
// into an address, that nobody listens there yet, and later that it still leads
// to that socket.
package sockpath

import (
	"fmt"
	"syscall"
)

// Max is how many bytes the path of a socket has at most on this system, without
// the final zero.
const Max = len(syscall.RawSockaddrUnix{}.Path) - 1

// Check is an error if path is too long for a socket. The caller adds what can
// be chosen shorter.
func Check(path string) error {
	if len(path) > Max {
		return fmt.Errorf("the path of the socket, %s, has %d bytes, and this system allows at most %d", path, len(path), Max)
	}
	return nil
}
