//go:build windows

package shm

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapFile(f *os.File, size int, readonly bool) (*Mapping, error) {
	prot, access := uint32(windows.PAGE_READWRITE), uint32(windows.FILE_MAP_READ|windows.FILE_MAP_WRITE)
	if readonly {
		prot, access = windows.PAGE_READONLY, windows.FILE_MAP_READ
	}
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, prot, uint32(uint64(size)>>32), uint32(size), nil)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	// The view keeps the mapping object alive.
	defer windows.CloseHandle(h)
	addr, err := windows.MapViewOfFile(h, access, 0, 0, uintptr(size))
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	base := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return &Mapping{mem: unsafe.Slice((*byte)(base), size), readonly: readonly}, nil
}

func (m *Mapping) address() uintptr { return uintptr(unsafe.Pointer(&m.mem[0])) }

func (m *Mapping) sync(bool) error {
	return windows.FlushViewOfFile(m.address(), uintptr(len(m.mem)))
}

func (m *Mapping) unmap() error { return windows.UnmapViewOfFile(m.address()) }
