//go:build freebsd

package stage

import "syscall"

// The system's numbers are signed, and its largest one is no limit.
const noLimit = 1<<63 - 1

// Getrlimit returns this process's own limit of a resource.
func Getrlimit(resource int) (soft, hard uint64, err error) {
	var l syscall.Rlimit
	err = syscall.Getrlimit(resource, &l)
	return unsigned(l.Cur), unsigned(l.Max), err
}

func setrlimit(resource int, soft, hard uint64) error {
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: signed(soft), Max: signed(hard)})
}

func unsigned(n int64) uint64 {
	if n == noLimit {
		return ^uint64(0)
	}
	return uint64(n)
}

func signed(n uint64) int64 { return int64(min(n, noLimit)) }
