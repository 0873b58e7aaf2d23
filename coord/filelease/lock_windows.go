//go:build windows

package filelease

import (
	"os"

	"golang.org/x/sys/windows"
)

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

func openProbe(path string, _ bool) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

// lockedByte lies behind everything that is in these files: a locked byte can
// be read by nobody else.
func lockedByte() *windows.Overlapped { return &windows.Overlapped{Offset: 1 << 30} }

// tryLock takes an exclusive lock, which belongs to the open file.
func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := control(f, func(h windows.Handle) error { return windows.LockFileEx(h, flags, 0, 1, 0, lockedByte()) })
	if err == windows.ERROR_LOCK_VIOLATION || err == windows.ERROR_IO_PENDING {
		return false, nil
	}
	return err == nil, err
}

func dropLock(f *os.File) {
	control(f, func(h windows.Handle) error { return windows.UnlockFileEx(h, 0, 1, 0, lockedByte()) })
}

func control(f *os.File, do func(windows.Handle) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var derr error
	if err := conn.Control(func(fd uintptr) { derr = do(windows.Handle(fd)) }); err != nil {
		return err
	}
	return derr
}

// fileNumber tells one file from another that had its name; 0 if unknown.
func fileNumber(f *os.File) uint64 {
	var info windows.ByHandleFileInformation
	if control(f, func(h windows.Handle) error { return windows.GetFileInformationByHandle(h, &info) }) != nil {
		return 0
	}
	return uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)
}

// syncDir: a rename is made durable by the system's journal.
func syncDir(string) error { return nil }
