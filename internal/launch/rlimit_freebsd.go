//go:build freebsd

package launch

import (
	"math"
	"syscall"
)

// The system's numbers are signed, and its largest one is no limit.

func getLimit(resource int) (soft, hard uint64, err error) {
	var l syscall.Rlimit
	err = syscall.Getrlimit(resource, &l)
	return unsigned(l.Cur), unsigned(l.Max), err
}

func setLimit(resource int, soft, hard uint64) error {
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: signed(soft), Max: signed(hard)})
}

func unsigned(n int64) uint64 {
	if n == math.MaxInt64 {
		return Unlimited
	}
	return uint64(n)
}

func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
