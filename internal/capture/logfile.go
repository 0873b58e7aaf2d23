//go:build unix

package capture

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// logFile is a file that is appended to and rotated. It opens when there is
// something to write, and again when the path no longer leads to what it has
// open. For one goroutine.
type logFile struct {
	path string
	max  int64
	keep int

	file *os.File
	own  fs.FileInfo
	size int64
}

// write appends whole lines. It returns how many of them did not make it, and
// why; a part of a line is taken back.
func (l *logFile) write(text []byte) (lost uint64, err error) {
	for len(text) > 0 {
		if err := l.open(); err != nil {
			return countLines(text), err
		}
		chunk := l.fitting(text)
		if len(chunk) == 0 {
			if err := l.rotate(); err != nil {
				chunk = text // better too long than lost
			} else {
				continue
			}
		}
		n, err := l.file.Write(chunk)
		whole := bytes.LastIndexByte(chunk[:n], '\n') + 1
		l.size += int64(whole)
		text = text[whole:]
		if err != nil {
			l.file.Truncate(l.size)
			l.close()
			return countLines(text), err
		}
	}
	return 0, nil
}

func countLines(text []byte) uint64 { return uint64(bytes.Count(text, []byte{'\n'})) }

// fitting is the part of text for which there is room, in whole lines. A file
// has at least one line, however long.
func (l *logFile) fitting(text []byte) []byte {
	room := l.max - l.size
	if int64(len(text)) <= room {
		return text
	}
	if l.size == 0 {
		first := bytes.IndexByte(text, '\n') + 1
		if int64(first) > room {
			return text[:first]
		}
	}
	if room <= 0 {
		return nil
	}
	return text[:bytes.LastIndexByte(text[:room], '\n')+1]
}

func (l *logFile) open() error {
	if l.file != nil {
		if fi, err := os.Lstat(l.path); err == nil && os.SameFile(fi, l.own) {
			return nil
		}
		l.close() // deleted or moved: let its disk space go
	}
	f, err := openAppend(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		if merr := os.MkdirAll(filepath.Dir(l.path), 0o700); merr == nil {
			f, err = openAppend(l.path)
		}
	}
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.own, l.size = f, fi, fi.Size()
	return l.mend()
}

// mend ends a line that a crash left without an end.
func (l *logFile) mend() error {
	if l.size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := l.file.ReadAt(last[:], l.size-1); err != nil || last[0] == '\n' {
		return nil
	}
	n, err := l.file.Write([]byte{'\n'})
	l.size += int64(n)
	if err != nil {
		l.close()
	}
	return err
}

// rotate moves FILE to FILE.1, FILE.1 to FILE.2 and so on. The caller goes on
// in a new file.
func (l *logFile) rotate() error {
	if l.keep <= 0 {
		if err := l.file.Truncate(0); err != nil {
			return err
		}
		l.size = 0
		return nil
	}
	for i := l.keep - 1; i >= 1; i-- {
		err := os.Rename(rotated(l.path, i), rotated(l.path, i+1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(l.path, rotated(l.path, 1)); err != nil {
		return err
	}
	l.close()
	return nil
}

// rotated is the name of the i-th file before the current one, which is 0.
func rotated(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

func (l *logFile) close() {
	if l.file != nil {
		l.file.Close()
		l.file, l.own, l.size = nil, nil, 0
	}
}
