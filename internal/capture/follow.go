//go:build unix

package capture

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

const (
	// maxRotated bounds the search for rotated files.
	maxRotated = 1000
	// renameGap is how many names in a row are missing while files are moved:
	// one is on its way, and the current one may not be there yet.
	renameGap = 2
)

// follower reads one log onwards, from one file to the next.
type follower struct {
	source Source
	file   *os.File // nil: the log did not exist when we last looked
	offset int64    // behind the last whole line that was read
}

func (f *follower) close() {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}

// last returns the newest n lines, also from rotated files (all if n is
// negative), and sets the follower behind them.
func (f *follower) last(n int) ([]line, error) {
	var blocks [][]line
	var newest fs.FileInfo
	for i, gap := 0, 0; (n != 0 || f.file == nil) && gap <= renameGap && i <= maxRotated; i++ {
		file, err := os.Open(rotated(f.source.File, i))
		if errors.Is(err, fs.ErrNotExist) {
			gap++
			continue
		}
		if err != nil {
			return nil, err
		}
		var fi fs.FileInfo
		if fi, err = file.Stat(); err == nil && newest != nil && os.SameFile(fi, newest) {
			file.Close() // moved here while we looked
			continue
		}
		end, err := wholeSize(file)
		var lines []line
		if err == nil {
			lines, err = f.tailOf(file, end, n)
		}
		if err != nil {
			file.Close()
			return nil, err
		}
		if f.file == nil {
			f.file, f.offset, newest = file, end, fi // from here on it goes on
		} else {
			file.Close()
		}
		blocks = append(blocks, lines)
		n = rest(n, len(lines))
	}
	slices.Reverse(blocks)
	return slices.Concat(blocks...), nil
}

func rest(n, got int) int {
	if n < 0 {
		return n
	}
	return max(0, n-got)
}

const blockBytes = 64 << 10

// wholeSize is the offset behind the last newline: a line that is being
// written does not count yet.
func wholeSize(file *os.File) (int64, error) {
	fi, err := file.Stat()
	if err != nil {
		return 0, err
	}
	for end := fi.Size(); end > 0; {
		start := max(0, end-blockBytes)
		b, err := readAt(file, start, end)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// tailOf returns the last n lines before end, which is behind a newline or 0.
func (f *follower) tailOf(file *os.File, end int64, n int) ([]line, error) {
	start := end
	var text []byte
	for found := 0; start > 0 && (n < 0 || found <= n); {
		from := max(0, start-blockBytes)
		b, err := readAt(file, from, start)
		if err != nil {
			return nil, err
		}
		found += bytes.Count(b, []byte{'\n'})
		text = append(b, text...)
		start = from
	}
	lines := f.lines(text)
	if start > 0 && len(lines) > 0 {
		lines = lines[1:] // its beginning was not read
	}
	if n >= 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return lines, nil
}

func readAt(file *os.File, from, to int64) ([]byte, error) {
	b := make([]byte, to-from)
	n, err := file.ReadAt(b, from)
	if err == io.EOF { // the file was cut meanwhile
		err = nil
	}
	return b[:n], err
}

func (f *follower) lines(text []byte) []line {
	var out []line
	for l := range strings.Lines(string(text)) {
		out = append(out, line{name: f.source.Name, text: strings.TrimSuffix(l, "\n")})
	}
	return out
}

// next returns the whole lines that came since the last call.
func (f *follower) next() ([]line, error) {
	var out []line
	for {
		if f.file == nil {
			// There was none when it began, so that all there is now is new.
			oldest, err := f.newerThan(nil)
			if err != nil || oldest == nil {
				return out, err
			}
			f.file, f.offset = oldest, 0
		}
		// Asked before reading: a file that was moved away already gets no
		// more lines, so that what is read now is all of it.
		successor, moved, err := f.successor()
		if err != nil {
			return out, err
		}
		lines, err := f.readOn()
		out = append(out, lines...)
		if err != nil || !moved {
			closeFile(successor)
			return out, err
		}
		if successor == nil {
			return out, nil // the next file is not there yet
		}
		f.close()
		f.file, f.offset = successor, 0
	}
}

func closeFile(f *os.File) {
	if f != nil {
		f.Close()
	}
}

func (f *follower) readOn() ([]line, error) {
	fi, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() < f.offset {
		f.offset = 0 // cut to start anew
	}
	b, err := readAt(f.file, f.offset, fi.Size())
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	f.offset += int64(len(b))
	return f.lines(b), err
}

// successor tells whether the open file was moved away, and opens the one that
// was written after it, if that exists.
func (f *follower) successor() (next *os.File, moved bool, err error) {
	own, err := f.file.Stat()
	if err != nil {
		return nil, false, err
	}
	if fi, err := os.Stat(f.source.File); err == nil && os.SameFile(fi, own) {
		return nil, false, nil
	}
	next, err = f.newerThan(own)
	return next, true, err
}

// newerThan opens the file that was written after own, the oldest of them if
// own is not there any more, or nil. Files are opened, newest first, before they are compared,
// so that a rotation meanwhile shows the same one twice instead of hiding one.
func (f *follower) newerThan(own fs.FileInfo) (newer *os.File, err error) {
	for i, gap := 0, 0; gap <= renameGap && i <= maxRotated; i++ {
		file, err := os.Open(rotated(f.source.File, i))
		if errors.Is(err, fs.ErrNotExist) {
			gap++
			continue
		}
		var fi fs.FileInfo
		if err == nil {
			fi, err = file.Stat()
		}
		if err != nil {
			closeFile(file)
			closeFile(newer)
			return nil, err
		}
		if own != nil && (os.SameFile(fi, own) || fi.ModTime().Before(own.ModTime())) {
			file.Close()
			return newer, nil
		}
		closeFile(newer)
		newer = file
	}
	return newer, nil
}
