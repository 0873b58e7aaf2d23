//go:build linux

package shm

import (
	"os"

	"golang.org/x/sys/unix"
)

// Populate has every page of the segment entered into this process's page table,
// so that no access has to wait for that. Content stays as it is. Where the
// kernel cannot (before Linux 5.14), the first access does it.
func (s *Segment) Populate() {
	if unix.Madvise(s.m.mem, unix.MADV_POPULATE_WRITE) != nil {
		return
	}
	// Under a hypervisor that keeps a page table of its own this is what enters
	// them there.
	for off := 0; off < len(s.m.mem); off += os.Getpagesize() {
		uint64At(s.m.mem, off).Or(0)
	}
}
