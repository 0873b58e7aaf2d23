//go:build linux

package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

func pipeCloexec(p *[2]int) error { return unix.Pipe2(p[:], unix.O_CLOEXEC) }

// ownProgram is what a stage executes. The link also leads to a program whose
// file was replaced or removed since this process started.
func ownProgram() (string, error) {
	const link = "/proc/self/exe"
	if _, err := os.Lstat(link); err == nil {
		return link, nil
	}
	return os.Executable()
}
