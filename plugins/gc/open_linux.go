//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openPlain opens a folder in one step that no exchange of components can
// divert. It needs no permission to read the folders on the way.
func openPlain(folder string) (*os.Root, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, folder, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.6, or filtered
		return walkPlain(folder)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: folder, Err: err}
	}
	f := os.NewFile(uintptr(fd), folder)
	defer f.Close()
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return walkPlain(folder) // no /proc, or no permission, which it then tells
	}
	return root, nil
}
