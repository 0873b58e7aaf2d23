//go:build unix

package capture

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"time"
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
	keep   func(line) bool // nil keeps all
	since  time.Time       // lines before are not kept; zero: all are
	piece  *piece          // nil: the log did not exist when we last looked
	offset int64           // behind the last whole line that was read; of a compressed one, not 0 when it was read
}

func (f *follower) close() {
	f.piece.close()
	f.piece = nil
}

// last returns the newest n lines that are kept, also from rotated files (all
// if n is negative), and sets the follower behind them.
func (f *follower) last(n int) ([]line, error) {
	var blocks [][]line
	for i, gap := 0, 0; (n != 0 || f.piece == nil) && gap <= renameGap && i <= maxRotated; i++ {
		p, err := openPiece(f.source.File, i)
		if err != nil {
			return nil, err
		}
		if p == nil {
			gap++
			continue
		}
		if f.piece != nil && p.same(f.piece) {
			p.close() // moved here while we looked
			continue
		}
		var lines []line
		var end int64
		if p.packed != nil {
			end = 1
			lines, err = f.tailOfPacked(p, n)
		} else if end, err = wholeSize(p.file); err == nil {
			lines, err = f.tailOf(p.file, end, n)
		}
		if err != nil {
			p.close()
			return nil, err
		}
		old := p.before(f.since)
		if f.piece == nil {
			f.piece, f.offset = p, end // from here on it goes on
		} else {
			p.close()
		}
		blocks = append(blocks, lines)
		n = rest(n, len(lines))
		if old {
			break
		}
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

// tailOf returns the last n lines that are kept before end, which is behind a
// newline or 0.
func (f *follower) tailOf(file *os.File, end int64, n int) ([]line, error) {
	var blocks [][]line
	var begun []byte // the end of a line whose beginning was not read yet
	for start := end; start > 0 && n != 0; {
		from := max(0, start-blockBytes)
		b, err := readAt(file, from, start)
		if err != nil {
			return nil, err
		}
		text, cut := append(b, begun...), 0
		if from > 0 {
			cut = bytes.IndexByte(text, '\n') + 1
			if cut == len(text) {
				cut = 0 // one line, or less
			}
			begun = text[:cut]
			if cut == 0 {
				begun, text = text, nil
			}
		}
		lines := f.lines(text[cut:])
		start = from
		if n >= 0 && len(lines) > n {
			lines = lines[len(lines)-n:]
		}
		blocks = append(blocks, lines)
		n = rest(n, len(lines))
	}
	slices.Reverse(blocks)
	return slices.Concat(blocks...), nil
}

// tailOfPacked is tailOf for what can only be read from its beginning on.
func (f *follower) tailOfPacked(p *piece, n int) ([]line, error) {
	var lines []line
	err := p.unpackLines(func(text string) {
		lines = append(lines, f.lines([]byte(text))...)
		if n >= 0 && len(lines) > 2*n {
			lines = append(lines[:0], lines[len(lines)-n:]...)
		}
	})
	if n >= 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return lines, err
}

func readAt(file *os.File, from, to int64) ([]byte, error) {
	b := make([]byte, to-from)
	n, err := file.ReadAt(b, from)
	if err == io.EOF { // the file was cut meanwhile
		err = nil
	}
	return b[:n], err
}

// lines takes whole lines apart, and returns those that are kept.
func (f *follower) lines(text []byte) []line {
	var out []line
	for text := range strings.Lines(string(text)) {
		l := line{source: &f.source, text: strings.TrimSuffix(text, "\n")}
		if f.keep == nil || f.keep(l) {
			out = append(out, l)
		}
	}
	return out
}

// next returns the whole lines that came since the last call.
func (f *follower) next() ([]line, error) {
	var out []line
	for {
		if f.piece == nil {
			// There was none when it began, so that all there is now is new.
			oldest, err := f.newerThan(nil)
			if err != nil || oldest == nil {
				return out, err
			}
			f.piece, f.offset = oldest, 0
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
			successor.close()
			return out, err
		}
		if successor == nil {
			return out, nil // the next file is not there yet
		}
		f.close()
		f.piece, f.offset = successor, 0
	}
}

func (f *follower) readOn() (lines []line, err error) {
	if f.piece.packed != nil {
		if f.offset == 0 {
			f.offset = 1
			err = f.piece.unpackLines(func(text string) { lines = append(lines, f.lines([]byte(text))...) })
		}
		return lines, err
	}
	if err := f.piece.stat(); err != nil {
		return nil, err
	}
	size := f.piece.info.Size()
	if size < f.offset {
		f.offset = 0 // cut to start anew
	}
	b, err := readAt(f.piece.file, f.offset, size)
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	f.offset += int64(len(b))
	return f.lines(b), err
}

// successor tells whether the open file was moved away, and opens the one that
// was written after it, if that exists.
func (f *follower) successor() (next *piece, moved bool, err error) {
	if err := f.piece.stat(); err != nil {
		return nil, false, err
	}
	if fi, err := os.Stat(f.source.File); err == nil && os.SameFile(fi, f.piece.info) {
		return nil, false, nil
	}
	next, err = f.newerThan(f.piece)
	return next, true, err
}

// newerThan opens the piece that was written after own, the oldest of them if
// own is not there any more, or nil. Pieces are opened, newest first, before they are compared,
// so that a rotation meanwhile shows the same one twice instead of hiding one.
func (f *follower) newerThan(own *piece) (newer *piece, err error) {
	for i, gap := 0, 0; gap <= renameGap && i <= maxRotated; i++ {
		p, err := openPiece(f.source.File, i)
		if err != nil {
			newer.close()
			return nil, err
		}
		if p == nil {
			gap++
			continue
		}
		if own != nil && (p.same(own) || p.before(own.info.ModTime())) {
			p.close()
			return newer, nil
		}
		newer.close()
		newer = p
	}
	return newer, nil
}
