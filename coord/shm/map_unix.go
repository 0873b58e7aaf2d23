//go:build unix

package shm

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int, readonly bool) (*Mapping, error) {
	prot := unix.PROT_READ | unix.PROT_WRITE
	if readonly {
		prot = unix.PROT_READ
	}
	var mem []byte
	var err error
	conn, err := f.SyscallConn()
	if err == nil {
		cerr := conn.Control(func(fd uintptr) { mem, err = unix.Mmap(int(fd), 0, size, prot, unix.MAP_SHARED) })
		if err == nil {
			err = cerr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return &Mapping{mem: mem, readonly: readonly}, nil
}

func (m *Mapping) sync(wait bool) error {
	how := unix.MS_ASYNC
	if wait {
		how = unix.MS_SYNC
	}
	return unix.Msync(m.mem, how)
}

func (m *Mapping) unmap() error { return unix.Munmap(m.mem) }
