package shm

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Open maps the segment at path for reading and writing. It follows no
// symbolic link and changes nothing. The errors are those of "opened" in
// errors.go, wrapped with the path.
func Open(path string) (*Segment, error) { return open(path, false) }

// OpenReadOnly maps the segment so that it can only be read: a store through
// one of its views faults.
func OpenReadOnly(path string) (*Segment, error) { return open(path, true) }

func open(path string, readonly bool) (*Segment, error) {
	f, err := openFile(path, readonly)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	return openMapped(f, path, readonly)
}

// OpenFile maps the segment behind an open file, which then belongs to the
// Segment, or is closed on error. path is for messages.
func OpenFile(f *os.File, path string) (*Segment, error) { return openMapped(f, path, false) }

func openMapped(f *os.File, path string, readonly bool) (*Segment, error) {
	s, err := mapValidated(f, path, readonly)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open segment %s: %w", path, err)
	}
	return s, nil
}

func mapValidated(f *os.File, path string, readonly bool) (*Segment, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%v: %w", fi.Mode().Type(), ErrNotRegular)
	}
	if err := checkOwner(fi); err != nil {
		return nil, err
	}
	head := make([]byte, headerSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	p, g, meta, err := decodeHeader(head[:n], fi.Size())
	if err != nil {
		return nil, err
	}
	m, err := mapFile(f, g.total(), readonly)
	if err != nil {
		return nil, err
	}
	s := &Segment{path: path, file: f, state: newFileState(f), m: m, params: p, geo: g, meta: meta, head: header(head)}
	if err := s.bind(); err != nil {
		m.unmap()
		return nil, err
	}
	return s, nil
}
