//go:build unix && !linux

package launch

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func pipeCloexec(p *[2]int) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	return nil
}

func ownProgram() (string, error) { return os.Executable() }
