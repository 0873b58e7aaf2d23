package shm

import "github.com/standbyd/standbyd/internal/proc"

// Scratch makes a segment in this process's own memory, which nobody else can
// open: for going through a protocol without anybody noticing. It has no file,
// so Check fails and Flush means nothing; it needs no Close.
func Scratch(p Params) (*Segment, error) {
	if err := p.normalize(); err != nil {
		return nil, err
	}
	me, err := proc.Self()
	if err != nil {
		return nil, err
	}
	g := p.geometry()
	s := &Segment{path: "scratch", m: &Mapping{mem: make([]byte, g.total())}, params: p, geo: g, meta: Meta{Boot: me.Boot}}
	s.once.Do(func() {}) // nothing is to be unmapped
	if err := s.bind(); err != nil {
		return nil, err
	}
	s.begin()
	return s, nil
}
