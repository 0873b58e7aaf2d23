//go:build !linux

package shm

import "os"

// allocate gives the file its blocks now.
func allocate(f *os.File, size int64) error { return writeZeros(f, size) }
