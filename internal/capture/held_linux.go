//go:build linux

package capture

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// held reports whether anybody has the FIFO, of which conn reads, open for
// writing. The kernel tells a reader (POLLHUP), but only of writers that came
// after it: so we are one for a moment. Who cannot be asked counts as held.
func held(conn syscall.RawConn) bool {
	answer := true
	conn.Control(func(fd uintptr) {
		w, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(fd)), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		unix.Close(w)
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(p, 0); err == nil {
			answer = p[0].Revents&unix.POLLHUP == 0
		}
	})
	return answer
}
