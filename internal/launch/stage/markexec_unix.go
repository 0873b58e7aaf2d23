//go:build unix

package stage

import (
	"os"
	"strconv"
	"syscall"
)

// markOnExec is closeOthersOnExec where the kernel cannot do it in one call.
func markOnExec(fd int) {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		for n := fd; n < fd+256; n++ {
			syscall.CloseOnExec(n)
		}
		return
	}
	for _, e := range names {
		if n, err := strconv.Atoi(e.Name()); err == nil && n >= fd {
			syscall.CloseOnExec(n)
		}
	}
}
