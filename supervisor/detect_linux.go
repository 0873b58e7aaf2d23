//go:build linux

package supervisor

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// detectWays lists how a death is noticed on this machine, the first way first.
var detectWays = sync.OnceValue(func() []string {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return []string{"tick"}
	}
	unix.Close(fd)
	return []string{"pidfd", "tick"}
})
