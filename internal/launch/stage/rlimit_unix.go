//go:build unix && !freebsd

package stage

import "syscall"

// Getrlimit returns this process's own limit of a resource.
func Getrlimit(resource int) (soft, hard uint64, err error) {
	var l syscall.Rlimit
	err = syscall.Getrlimit(resource, &l)
	return l.Cur, l.Max, err
}

// setrlimit goes through syscall, so that its exec does not put the limit of
// open files back to what it was before the runtime raised it.
func setrlimit(resource int, soft, hard uint64) error {
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: soft, Max: hard})
}
