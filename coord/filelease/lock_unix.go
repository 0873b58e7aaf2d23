//go:build unix

package filelease

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func openLock(path string) (*os.File, error) { return openPlain(path, os.O_RDWR|os.O_CREATE) }

// openProbe opens a lock for a look. Read-only where locks allow it: so the
// look is no event for those who wait for a holder to close the file.
func openProbe(path string, network bool) (*os.File, error) {
	if network {
		return openPlain(path, os.O_RDWR)
	}
	return openPlain(path, os.O_RDONLY)
}

func openPlain(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
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
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

func dropLock(f *os.File) { flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var lerr error
	err = conn.Control(func(fd uintptr) {
		for {
			if lerr = unix.Flock(int(fd), how); lerr != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return lerr
}

// fileNumber tells one file from another that had its name; 0 if unknown.
func fileNumber(f *os.File) uint64 {
	fi, err := f.Stat()
	if err != nil {
		return 0
	}
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
