//go:build unix && !linux

package launch

import (
	"syscall"

	"github.com/standbyd/standbyd/internal/cgroup"
)

func forkInto(dir, path string, argv []string, attr *syscall.ProcAttr) (pid int, step string, err error) {
	if dir != "" {
		return 0, "cgroup", cgroup.ErrNone
	}
	pid, err = syscall.ForkExec(path, argv, attr)
	return pid, "", err
}
