//go:build unix

package capture

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// piece is one file of a log: the current one, or a rotated one, compressed or
// not.
type piece struct {
	file   *os.File
	packed *gzip.Reader // nil: plain
	info   fs.FileInfo
	origin origin // of the plain form
}

// openPiece opens the i-th piece; nil if it is not there.
func openPiece(path string, i int) (*piece, error) {
	// It may be compressed between two looks.
	for _, name := range []string{rotated(path, i), pressed(path, i), rotated(path, i)} {
		file, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p := &piece{file: file}
		if err = p.stat(); err == nil && name == pressed(path, i) {
			err = p.unpack()
		}
		if err != nil {
			file.Close()
			return nil, err
		}
		return p, nil
	}
	return nil, nil
}

// stat looks at the file again: it may have grown.
func (p *piece) stat() (err error) {
	if p.info, err = p.file.Stat(); err == nil && p.packed == nil {
		p.origin = originOf(p.info)
	}
	return err
}

func (p *piece) unpack() (err error) {
	if p.packed, err = gzip.NewReader(bufio.NewReaderSize(p.file, blockBytes)); err == nil {
		p.origin = parseOrigin(p.packed.Comment)
	}
	return err
}

func (p *piece) close() {
	if p != nil {
		p.file.Close()
	}
}

func (p *piece) same(other *piece) bool {
	return os.SameFile(p.info, other.info) || p.origin == other.origin
}

func (p *piece) before(at time.Time) bool { return p.info.ModTime().Before(at) }

// unpackLines passes on every line of a compressed piece.
func (p *piece) unpackLines(emit func(text string)) error {
	b := bufio.NewReaderSize(p.packed, blockBytes)
	for {
		text, err := b.ReadString('\n')
		if err == io.EOF {
			return nil // a part of a line is none
		}
		if err != nil {
			return err
		}
		emit(text)
	}
}
