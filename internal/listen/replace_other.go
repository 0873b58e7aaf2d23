//go:build unix && !linux

package listen

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// replace makes onto another descriptor of fd's socket, closed on exec.
func replace(fd, onto int) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Dup2(fd, onto); err != nil {
		return err
	}
	unix.CloseOnExec(onto)
	return nil
}

// prepareMode has nothing to do where a socket's mode is not that of its path.
func prepareMode(int, fs.FileMode) {}
