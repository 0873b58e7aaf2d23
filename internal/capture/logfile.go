//go:build unix

package capture

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// logFile is a file that is appended to and rotated. It opens when there is
// something to write, and again when the path no longer leads to what it has
// open. For one goroutine.
type logFile struct {
	path    string
	options Options // set before each write
	press   *press  // nil: nothing is compressed

	file *os.File
	own  fs.FileInfo
	size int64
	born time.Time // of its first line
}

// write appends whole lines. It returns how many of them did not make it, and
// why; a part of a line is taken back.
func (l *logFile) write(text []byte) (lost uint64, err error) {
	for len(text) > 0 {
		if err := l.open(); err != nil {
			return countLines(text), err
		}
		var chunk []byte
		if !l.tooOld() {
			chunk = l.fitting(text)
		}
		if len(chunk) == 0 {
			if err := l.rotate(); err != nil {
				chunk = text // better too long than lost
			} else {
				continue
			}
		}
		if l.size == 0 {
			l.born = time.Now()
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
	room := l.options.MaxBytes - l.size
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
		if merr := os.MkdirAll(filepath.Dir(l.path), 0o750); merr == nil {
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
	l.born = l.firstStamp()
	return l.mend()
}

// firstStamp is the time of the first line; of a foreign one, that of the file.
func (l *logFile) firstStamp() time.Time {
	var b [len(stampLayout)]byte
	if _, err := l.file.ReadAt(b[:], 0); err == nil {
		if at, err := time.Parse(stampLayout, string(b[:])); err == nil {
			return at
		}
	}
	return l.own.ModTime()
}

func (l *logFile) tooOld() bool {
	return l.options.MaxAge > 0 && l.size > 0 && time.Since(l.born) >= l.options.MaxAge
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
	if l.options.Keep <= 0 {
		if err := l.file.Truncate(0); err != nil {
			return err
		}
		l.size = 0
		return nil
	}
	if l.press != nil {
		l.press.mu.Lock()
		defer l.press.mu.Unlock()
	}
	if err := shift(l.path, l.options.Keep); err != nil {
		return err
	}
	l.close()
	if l.press != nil {
		l.press.look(l.options)
	}
	return nil
}

// shift renames the rotated files, compressed or not, and lets the oldest go.
func shift(path string, keep int) error {
	// Fewer may be kept than before.
	for i := keep; ; i++ {
		gone := true
		for _, name := range []string{rotated(path, i), pressed(path, i)} {
			if err := os.Remove(name); err == nil {
				gone = false
			}
		}
		if gone {
			break
		}
	}
	for i := keep - 1; i >= 1; i-- {
		for _, name := range []func(string, int) string{rotated, pressed} {
			if err := os.Rename(name(path, i), name(path, i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return os.Rename(path, rotated(path, 1))
}

// rotated is the name of the i-th file before the current one, which is 0;
// pressed that of its compressed form.
func rotated(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

func pressed(path string, i int) string { return rotated(path, i) + ".gz" }

func (l *logFile) close() {
	if l.file != nil {
		l.file.Close()
		l.file, l.own, l.size = nil, nil, 0
	}
}
