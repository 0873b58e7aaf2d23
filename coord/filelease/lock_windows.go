//go:build windows

package filelease

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// tryLock takes an exclusive lock of the first byte, which belongs to the open
// file.
func tryLock(f *os.File) (bool, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	var lerr error
	err = conn.Control(func(fd uintptr) {
		const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
		lerr = windows.LockFileEx(windows.Handle(fd), flags, 0, 1, 0, &windows.Overlapped{})
	})
	if err == nil {
		err = lerr
	}
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return false, nil
	}
	return err == nil, err
}

const numbered = false

// fileNumber is not known here.
func fileNumber(fs.FileInfo) uint64 { return 0 }

// syncDir: a rename is made durable by the system's journal.
func syncDir(string) error { return nil }
