package coord

import (
	"errors"
	"os"
	"sync"

	"github.com/standbyd/standbyd/coord/shm"
)

// mapping is one segment as this process has it mapped. It stays mapped for as
// long as the process lives: a goroutine that was forgotten in a drain may
// call Check after its member has closed, and deserves an answer, not a fault.
// A process that joins the same file again gets the same mapping, so that
// nothing piles up.
type mapping struct {
	seg    *shm.Segment
	info   os.FileInfo
	joined bool // guarded by mappings
}

// mappings are all of this process. Process-wide on purpose: the owner word
// tells processes apart, not members, so a second member of one process in one
// segment would be taken for the first.
var mappings struct {
	sync.Mutex
	all []*mapping
}

// attach returns the mapping of the segment that open opens, with this process
// entered as its member. ErrAlreadyMember if it is one.
func attach(path string, open func() (*shm.Segment, error)) (*mapping, error) {
	mappings.Lock()
	defer mappings.Unlock()
	seg, err := open()
	if err != nil {
		return nil, err
	}
	info, err := seg.File().Stat()
	if err != nil {
		seg.Close()
		return nil, err
	}
	for _, mp := range mappings.all {
		if !os.SameFile(mp.info, info) {
			continue
		}
		seg.Close()
		if mp.joined {
			return nil, ErrAlreadyMember
		}
		if err := mp.seg.Check(); err != nil {
			return nil, errors.Join(ErrSegmentGone, err)
		}
		mp.joined = true
		return mp, nil
	}
	mp := &mapping{seg: seg, info: info, joined: true}
	mappings.all = append(mappings.all, mp)
	return mp, nil
}

// leave ends this process's membership; the mapping stays.
func (mp *mapping) leave() {
	mappings.Lock()
	mp.joined = false
	mappings.Unlock()
}
