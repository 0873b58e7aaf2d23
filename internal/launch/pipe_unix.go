//go:build unix

package launch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipe makes a pipe between this process and a child. The child's end is in
// blocking mode, for it reads and writes without a poller; os.Pipe's would not be.
func pipe(parentWrites bool) (child int, parent *os.File, err error) {
	var p [2]int
	if err := pipeCloexec(&p); err != nil {
		return -1, nil, os.NewSyscallError("pipe", err)
	}
	child, mine, name := p[0], p[1], "gate"
	if !parentWrites {
		child, mine, name = p[1], p[0], "report"
	}
	if err := unix.SetNonblock(mine, true); err != nil {
		syscall.Close(child)
		syscall.Close(mine)
		return -1, nil, os.NewSyscallError("fcntl", err)
	}
	return child, os.NewFile(uintptr(mine), name), nil
}

func dupCloexec(fd int) (int, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}
