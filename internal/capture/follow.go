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

// maxRotated bounds the search for rotated files.
const maxRotated = 1000

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
	file, err := os.Open(f.source.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var blocks [][]line
	if err == nil {
		f.file = file
		end, err := wholeSize(file)
		if err != nil {
			return nil, err
		}
		f.offset = end
		lines, err := f.tailOf(file, end, n)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, lines)
		n = rest(n, len(lines))
	}
	for i := 1; n != 0 && i <= maxRotated; i++ {
		lines, err := f.tailOfRotated(i, n)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
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

func (f *follower) tailOfRotated(i, n int) ([]line, error) {
	file, err := os.Open(rotated(f.source.File, i))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	end, err := wholeSize(file)
	if err != nil {
		return nil, err
	}
	return f.tailOf(file, end, n)
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
			file, err := os.Open(f.source.File)
			if errors.Is(err, fs.ErrNotExist) {
				return out, nil
			}
			if err != nil {
				return out, err
			}
			f.file, f.offset = file, 0
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
// was written after it, if that exists. Files are opened, newest first, before
// they are compared, so that a rotation meanwhile shows the same one twice
// instead of hiding one.
func (f *follower) successor() (newer *os.File, moved bool, err error) {
	own, err := f.file.Stat()
	if err != nil {
		return nil, false, err
	}
	for i := 0; i <= maxRotated; i++ {
		file, err := os.Open(rotated(f.source.File, i))
		if errors.Is(err, fs.ErrNotExist) {
			if i == 0 {
				continue // between two renames, or deleted
			}
			break // ours is gone: the oldest that is left follows it
		}
		var fi fs.FileInfo
		if err == nil {
			fi, err = file.Stat()
		}
		if err != nil {
			closeFile(file)
			closeFile(newer)
			return nil, false, err
		}
		if os.SameFile(fi, own) {
			file.Close()
			return newer, i > 0, nil
		}
		closeFile(newer)
		newer = file
	}
	return newer, true, nil
}
