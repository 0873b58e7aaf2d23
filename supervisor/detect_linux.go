//go:build linux

package supervisor

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// detectWays lists how a death can be noticed on this machine, as far as this
// process knows.
var detectWays = sync.OnceValue(func() []string {
	ways := []string{"robust"} // a worker says when it is not so
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); err == nil {
		unix.Close(fd)
		ways = append(ways, "pidfd")
	}
	return append(ways, "tick")
})
