package shm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// Create makes a new segment at path and maps it. A path that exists is
// ErrExists and stays as it was. The file appears whole or not at all: it is
// built beside the path, its blocks are allocated (a full disk is an error
// here, and no fault later), and it is linked into place. init, if not nil, is
// called with the mapped segment before it has its name.
func Create(path string, p Params, init func(*Segment) error) (*Segment, error) {
	s, err := create(path, p, init)
	if err != nil {
		return nil, fmt.Errorf("create segment %s: %w", path, err)
	}
	return s, nil
}

func create(path string, p Params, init func(*Segment) error) (_ *Segment, err error) {
	if err := p.normalize(); err != nil {
		return nil, err
	}
	// Looked at first so that the common refusal costs nothing; the link
	// below is what decides.
	if _, err := os.Lstat(path); err == nil {
		return nil, ErrExists
	}
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text())
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp)
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	g := p.geometry()
	if err := allocate(f, int64(g.total())); err != nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", g.total(), err)
	}
	if p.UID >= 0 || p.GID >= 0 {
		if err := f.Chown(p.UID, p.GID); err != nil {
			return nil, err
		}
	}
	m, err := mapFile(f, g.total(), false)
	if err != nil {
		return nil, err
	}
	me, err := proc.Self()
	if err != nil {
		m.unmap()
		return nil, err
	}
	meta := Meta{Boot: me.Boot, CreatedAt: time.Now()}
	encodeHeader(m.mem, p, meta)
	s := &Segment{path: path, file: f, state: newFileState(f), m: m, params: p, geo: g, meta: meta, head: header(m.mem[:offChecksum+4])}
	if err = s.bind(); err == nil {
		s.begin()
		if init != nil {
			err = init(s)
		}
	}
	if err == nil {
		err = m.sync(true)
	}
	if err == nil {
		err = os.Link(tmp, path)
		if errors.Is(err, fs.ErrExist) {
			err = ErrExists
		}
	}
	if err != nil {
		m.unmap()
		return nil, err
	}
	return s, nil
}

// begin sets the words that do not begin as 0.
func (s *Segment) begin() {
	s.Heartbeat[0].Store(PackHeartbeat(0, 0, false))
	s.Heartbeat[1].Store(PackHeartbeat(1<<32-1, 0, false))
	s.TickedAt.Store(uint64(proc.MonoNow()))
}

// writeZeros allocates the blocks of a file where fallocate cannot.
func writeZeros(f *os.File, size int64) error {
	zeros := make([]byte, 1<<16)
	for off := int64(0); off < size; off += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-off)], off); err != nil {
			return err
		}
	}
	return nil
}
