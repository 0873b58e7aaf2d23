//go:build linux

package listen

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// replace makes onto another descriptor of fd's socket, closed on exec.
func replace(fd, onto int) error { return unix.Dup3(fd, onto, unix.O_CLOEXEC) }

// prepareMode runs before bind: the path is then born with no wider a mode.
func prepareMode(fd int, mode fs.FileMode) { unix.Fchmod(fd, uint32(mode.Perm())) }
