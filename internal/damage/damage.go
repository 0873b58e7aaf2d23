// Package damage changes the words of a mapped file under those who use it, as
// a program of bytes says: for the fuzz tests of package coord and below, and
// for nothing else.
package damage

import (
	"encoding/binary"
	"os"
	"testing"
)

// Dir is a folder that costs no disk where there is one: a fuzzer makes many
// files.
func Dir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "fuzz")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// File is the file below a mapping: every byte can be changed through it.
type File struct {
	*os.File
	Size int64

	t testing.TB
}

// Open opens the file at path until the test ends.
func Open(t testing.TB, path string) *File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	fi, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return &File{f, fi.Size(), t}
}

// Mutate changes the word at off by one of several ways.
func (d *File) Mutate(off int64, how byte, value uint64) {
	var b [8]byte
	if _, err := d.ReadAt(b[:], off); err != nil {
		d.t.Fatal(err)
	}
	w := binary.LittleEndian.Uint64(b[:])
	w = [...]uint64{value, w ^ 1<<(value%64), 0, ^uint64(0), w + 1, w - 1}[how%6]
	binary.LittleEndian.PutUint64(b[:], w)
	if _, err := d.WriteAt(b[:], off); err != nil {
		d.t.Fatal(err)
	}
}

// Script is bytes that are read as a program; zeros follow its end.
type Script struct{ Rest []byte }

// Byte is the next byte.
func (s *Script) Byte() byte {
	if len(s.Rest) == 0 {
		return 0
	}
	v := s.Rest[0]
	s.Rest = s.Rest[1:]
	return v
}

// Word is the next eight bytes.
func (s *Script) Word() (v uint64) {
	for range 8 {
		v = v<<8 | uint64(s.Byte())
	}
	return v
}
