//go:build unix

package capture

import (
	"bytes"
	"time"
	"unicode/utf8"
)

// stampLayout has a fixed width, so that lines of several files sort by text.
const stampLayout = "2006-01-02T15:04:05.000000Z"

// notePrefix marks the supervisor's own lines.
const notePrefix = "standbyd: "

// stamp is the time that a line begins with, with the space after it. All that
// was read at once has the same.
type stamp [len(stampLayout) + 1]byte

func stampOf(at time.Time) (s stamp) {
	var room [2 * len(stampLayout)]byte // the digits of nanoseconds pass through
	copy(s[:], at.UTC().AppendFormat(room[:0], stampLayout))
	s[len(s)-1] = ' '
	return s
}

func appendLine(b []byte, at stamp, prefix string, text []byte) []byte {
	b = append(b, at[:]...)
	b = append(b, prefix...)
	b = append(b, text...)
	return append(b, '\n')
}

// keptRest is how much of the room for long lines is kept for the next one.
const keptRest = 16 << 10

// splitter cuts a stream into lines. A line longer than maxLine is cut into
// pieces of about that length, between characters.
type splitter struct {
	rest []byte // of a line whose end has not come yet
}

// feed calls emit with every line that is complete, without its newline. The
// slice is valid during the call.
func (s *splitter) feed(b []byte, emit func(line []byte)) {
	for len(b) > 0 {
		part := b
		end := bytes.IndexByte(b, '\n')
		if end >= 0 {
			part = b[:end]
		}
		if room := s.room(part); len(part) > room {
			s.rest = append(s.rest, part[:room]...)
			s.flush(emit)
			b = b[room:]
			continue
		}
		if end < 0 {
			s.rest = append(s.rest, part...)
			return
		}
		b = b[end+1:]
		if len(s.rest) == 0 {
			emit(bytes.TrimSuffix(part, []byte{'\r'}))
			continue
		}
		s.rest = append(s.rest, part...)
		s.flush(emit)
	}
}

// room is how much of part still goes into the line: up to maxLine, and up to
// the end of a character that begins before it.
func (s *splitter) room(part []byte) int {
	n := max(0, maxLine-len(s.rest))
	limit := min(len(part), maxLine+utf8.UTFMax-1-len(s.rest))
	for n < limit && !utf8.RuneStart(part[n]) {
		n++
	}
	return n
}

// flush emits what is left of a line without an end.
func (s *splitter) flush(emit func(line []byte)) {
	if len(s.rest) > 0 {
		emit(bytes.TrimSuffix(s.rest, []byte{'\r'}))
		s.rest = s.rest[:0]
		if cap(s.rest) > keptRest {
			s.rest = nil
		}
	}
}
