//go:build unix

package filelease

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: unix.EINVAL}
	}
	return f, nil
}

// tryLock takes an exclusive flock, which belongs to the open file.
func tryLock(f *os.File) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var lerr error
	err = conn.Control(func(fd uintptr) {
		for {
			if lerr = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB); lerr != unix.EINTR {
				return
			}
		}
	})
	if err == nil {
		err = lerr
	}
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

// numbered: files have numbers here.
const numbered = true

// fileNumber names the file behind fi on its device.
func fileNumber(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
