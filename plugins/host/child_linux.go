//go:build linux

package host

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when our child is dead and still a zombie, so that its
// process group can be killed while nobody else can have the number. It waits
// in the runtime's poller, without a thread. false means that the kernel has
// no pidfd and nothing was waited for.
func awaitExit(pid int) bool {
	// A description of our own: os.Process's is shared with its Wait.
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	return conn.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		return err == nil && n > 0
	}) == nil
}
