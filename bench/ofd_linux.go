//go:build linux

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

func ofdLocks(f *os.File) (runner, error) {
	fd := f.Fd()
	set := func(typ int16) error {
		return unix.FcntlFlock(fd, unix.F_OFD_SETLKW, &unix.Flock_t{Type: typ, Whence: io.SeekStart, Len: 1})
	}
	if err := set(unix.F_WRLCK); err != nil {
		return nil, err
	}
	if err := set(unix.F_UNLCK); err != nil {
		return nil, err
	}
	return func(n int) {
		for range n {
			if set(unix.F_WRLCK) != nil || set(unix.F_UNLCK) != nil {
				panic("fcntl failed")
			}
		}
	}, nil
}
