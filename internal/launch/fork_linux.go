//go:build linux

package launch

import (
	"os"
	"syscall"

	"github.com/standbyd/standbyd/internal/cgroup"
)

// forkInto is ForkExec with the child born in a cgroup (Linux 5.7); an empty
// one is the parent's. Where the kernel or a sandbox does not know how, the
// child is moved: it waits at the gate meanwhile, or, without a stage, has just
// begun. step is where an error comes from: "", or "cgroup".
func forkInto(dir, path string, argv []string, attr *syscall.ProcAttr) (pid int, step string, err error) {
	if dir == "" {
		pid, err = syscall.ForkExec(path, argv, attr)
		return pid, "", err
	}
	f, err := os.Open(dir)
	if err != nil {
		return 0, "cgroup", err
	}
	defer f.Close()
	attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(f.Fd())
	if pid, err = syscall.ForkExec(path, argv, attr); err == nil {
		return pid, "", nil
	}
	// Either the cgroup or the program is what is wrong.
	attr.Sys.UseCgroupFD = false
	if pid, err = syscall.ForkExec(path, argv, attr); err != nil {
		return 0, "", err
	}
	if err := cgroup.Join(dir, pid); err != nil {
		syscall.Kill(pid, syscall.SIGKILL)
		wait(pid, 0)
		return 0, "cgroup", err
	}
	return pid, "", nil
}
