//go:build linux

package host

import (
	"fmt"
	"os/exec"
)

// useVerified makes cmd execute the very file that was verified, whatever has
// been put in its place since. A file that is written to in place afterwards
// is not noticed.
func (b *binary) useVerified(cmd *exec.Cmd) {
	if b.script {
		// The interpreter opens its script after the exec: it must inherit it.
		cmd.ExtraFiles = append(cmd.ExtraFiles, b.file)
		cmd.Path = fmt.Sprintf("/proc/self/fd/%d", 2+len(cmd.ExtraFiles))
		return
	}
	conn, err := b.file.SyscallConn()
	if err != nil {
		return
	}
	// In the child the descriptor is still open when the path is resolved.
	_ = conn.Control(func(fd uintptr) { cmd.Path = fmt.Sprintf("/proc/self/fd/%d", fd) })
}
