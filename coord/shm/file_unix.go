//go:build unix

package shm

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFile does not follow a link in the last element, and does not block on a FIFO.
func openFile(path string, readonly bool) (*os.File, error) {
	flag := os.O_RDWR
	if readonly {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		return f, nil
	}
	if fi, lerr := os.Lstat(path); lerr == nil && !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is a %v: %w", path, fi.Mode().Type(), ErrNotRegular)
	}
	return nil, err
}

// checkOwner: the file is ours or root's, or we are root and it belongs to
// whoever the role runs as; and nobody else may write it.
func checkOwner(fi os.FileInfo) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	me := os.Geteuid()
	if me != 0 && int(st.Uid) != me && st.Uid != 0 {
		return fmt.Errorf("owner is uid %d, this process is %d: %w", st.Uid, me, ErrOwner)
	}
	if fi.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("mode %v: %w", fi.Mode().Perm(), ErrMode)
	}
	return nil
}

func links(fi os.FileInfo) uint64 {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(st.Nlink)
}
