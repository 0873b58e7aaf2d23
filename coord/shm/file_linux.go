//go:build linux

package shm

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives the file its blocks now.
func allocate(f *os.File, size int64) error {
	err := unix.EINTR
	for err == unix.EINTR {
		conn, cerr := f.SyscallConn()
		if cerr != nil {
			return cerr
		}
		var ferr error
		if cerr := conn.Control(func(fd uintptr) { ferr = unix.Fallocate(int(fd), 0, 0, size) }); cerr != nil {
			return cerr
		}
		if ferr == nil {
			return nil
		}
		if !errors.As(ferr, &err) {
			return ferr
		}
	}
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return writeZeros(f, size)
	}
	return err
}
