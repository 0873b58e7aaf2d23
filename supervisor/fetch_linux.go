//go:build linux

package supervisor

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/proc"
)

// fetchListeners duplicates the named listeners of a worker into this process.
func fetchListeners(id proc.Identity, names []string, keep func(string, *os.File) bool) error {
	fds := listenFDs(environOf(id.PID)["STANDBYD_LISTEN_FDS"])
	pidfd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return fmt.Errorf("fetch sockets from %v: %w", id, err)
	}
	defer unix.Close(pidfd)
	if proc.Judge(id) == proc.Gone {
		return fmt.Errorf("fetch sockets from %v: %w", id, proc.ErrGone)
	}
	for _, name := range names {
		number, ok := fds[name]
		if !ok {
			continue
		}
		fd, err := unix.PidfdGetfd(pidfd, number, 0)
		if err != nil {
			return fmt.Errorf("fetch socket %q from %v: %w", name, id, err)
		}
		f := os.NewFile(uintptr(fd), name)
		if !keep(name, f) {
			f.Close()
		}
	}
	return nil
}
