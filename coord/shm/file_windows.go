//go:build windows

package shm

import "os"

func openFile(path string, readonly bool) (*os.File, error) {
	if readonly {
		return os.Open(path)
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}

// checkOwner leaves access to the file's ACL.
func checkOwner(os.FileInfo) error { return nil }

// links: a file that is mapped cannot be removed here.
func links(os.FileInfo) uint64 { return 1 }
