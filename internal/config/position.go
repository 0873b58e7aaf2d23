package config

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// place is a line and a column of one of the files, both from 1. The zero
// place is unknown.
type place struct {
	file      int // in the order in which they are read: 0 is the main one
	line, col int
}

// before orders places as they are read.
func (p place) before(q place) int {
	return cmp.Or(p.file-q.file, p.line-q.line, p.col-q.col)
}

// positions tells where the keys and values of a TOML document stand. Paths
// are written as in messages: role.kv.listen[0].address.
type positions struct {
	keys   map[string]place
	values map[string]place
}

// locate finds the places of a document that the TOML decoder has accepted.
// The decoder tells no positions of keys, and errors are about keys. On a
// document that it cannot follow it stops, and later places are unknown.
func locate(file int, text string) positions {
	s := newLocator(file, text)
	s.document()
	return s.out
}

// joinPath appends a key to a path, quoted if it is not a bare key.
func joinPath(prefix, key string) string {
	if !bareKey(key) {
		key = strconv.Quote(key)
	}
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

// indexPath appends an array index to a path.
func indexPath(prefix string, i int) string {
	return prefix + "[" + strconv.Itoa(i) + "]"
}

func bareKey(s string) bool {
	for i := range len(s) {
		if !bareByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func bareByte(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

type locator struct {
	text      string
	file      int
	at        int
	line, col int
	out       positions
	arrays    map[string]int // elements so far of each [[array of tables]]
	current   string         // path of what was read last: the key of a line until the next one begins
}

// culprit is the path of the key to which a text belongs that the decoder
// stumbled over: the one that is being read where the text before it ends. The
// decoder itself names the last key that it took, which may be another one.
func culprit(text string) (path string, at positions) {
	s := newLocator(0, text)
	s.document()
	return s.current, s.out
}

func newLocator(file int, text string) *locator {
	return &locator{
		text: text, file: file, line: 1, col: 1,
		out:    positions{keys: map[string]place{}, values: map[string]place{}},
		arrays: map[string]int{},
	}
}

// done says that what is inside path has been read. At the end of the text
// nobody knows.
func (s *locator) done(path string) {
	if !s.end() {
		s.current = path
	}
}

func (s *locator) here() place { return place{s.file, s.line, s.col} }
func (s *locator) end() bool   { return s.at >= len(s.text) }

func (s *locator) peek() byte {
	if s.end() {
		return 0
	}
	return s.text[s.at]
}

func (s *locator) has(prefix string) bool { return strings.HasPrefix(s.text[s.at:], prefix) }

func (s *locator) next() {
	if s.end() {
		return
	}
	r, n := utf8.DecodeRuneInString(s.text[s.at:])
	s.at += n
	if r == '\n' {
		s.line, s.col = s.line+1, 1
	} else {
		s.col++
	}
}

func (s *locator) skip(n int) {
	for range n {
		s.next()
	}
}

// blank skips spaces, line ends and comments.
func (s *locator) blank() {
	for !s.end() {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.next()
		case '#':
			for !s.end() && s.peek() != '\n' {
				s.next()
			}
		default:
			return
		}
	}
}

func (s *locator) document() {
	if s.has("\ufeff") {
		s.at += len("\ufeff")
	}
	table := ""
	for {
		s.blank()
		if s.end() {
			return
		}
		before := s.at
		s.current = table
		if s.peek() == '[' {
			table = s.header()
		} else {
			s.pair(table)
		}
		if s.spaces(); s.peek() == '\n' || s.peek() == '\r' || s.peek() == '#' {
			s.current = table
		}
		if s.at == before {
			return
		}
	}
}

// header reads [a.b] or [[a.b]] and returns the path of the table it opens.
func (s *locator) header() string {
	start := s.here()
	array := s.has("[[")
	s.skip(1)
	if array {
		s.skip(1)
	}
	parts, _ := s.dotted()
	path := ""
	for i, part := range parts {
		path = joinPath(path, part)
		if array && i == len(parts)-1 {
			s.note(path, start, start)
			path = indexPath(path, s.arrays[path])
			s.arrays[path[:strings.LastIndexByte(path, '[')]]++
		} else if n := s.arrays[path]; n > 0 {
			path = indexPath(path, n-1)
		}
		s.note(path, start, start)
	}
	s.current = path
	for !s.end() && s.peek() != '\n' {
		s.next()
	}
	return path
}

// pair reads key = value below the table.
func (s *locator) pair(table string) {
	parts, places := s.dotted()
	path := table
	for i, part := range parts {
		path = joinPath(path, part)
		s.note(path, places[i], place{})
	}
	s.current = path
	s.blank()
	if s.peek() != '=' {
		s.at = len(s.text)
		return
	}
	s.next()
	s.blank()
	s.value(path)
}

// dotted reads a.b."c d" and the place of each part.
func (s *locator) dotted() (parts []string, places []place) {
	for !s.end() {
		s.spaces()
		at := s.here()
		var part string
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			raw := s.quoted()
			part = strings.Trim(raw, `'`)
			if c == '"' {
				if u, err := strconv.Unquote(raw); err == nil {
					part = u
				} else {
					part = strings.Trim(raw, `"`)
				}
			}
		case bareByte(c):
			from := s.at
			for !s.end() && bareByte(s.peek()) {
				s.next()
			}
			part = s.text[from:s.at]
		default:
			return parts, places
		}
		parts, places = append(parts, part), append(places, at)
		s.spaces()
		if s.peek() != '.' {
			return parts, places
		}
		s.next()
	}
	return parts, places
}

func (s *locator) spaces() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.next()
	}
}

// quoted skips a string of any of the four kinds and returns its text.
func (s *locator) quoted() string {
	from := s.at
	quote := s.text[s.at : s.at+1]
	if s.has(strings.Repeat(quote, 3)) {
		s.skip(3)
		for !s.end() && !s.has(strings.Repeat(quote, 3)) {
			if quote == `"` && s.peek() == '\\' {
				s.next()
			}
			s.next()
		}
		s.skip(3)
		for s.peek() == quote[0] { // up to two quotes may stand before the closing ones
			s.next()
		}
		return s.text[from:s.at]
	}
	s.next()
	for !s.end() && s.peek() != quote[0] && s.peek() != '\n' {
		if quote == `"` && s.peek() == '\\' {
			s.next()
		}
		s.next()
	}
	s.next()
	return s.text[from:s.at]
}

func (s *locator) value(path string) {
	s.note(path, place{}, s.here())
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[':
		s.next()
		for i := 0; ; i++ {
			s.blank()
			if s.end() || s.peek() == ']' {
				s.next()
				return
			}
			before := s.at
			element := indexPath(path, i)
			s.note(element, s.here(), s.here())
			s.current = element
			s.value(element)
			s.done(path)
			s.blank()
			if s.peek() == ',' {
				s.next()
			}
			if s.at == before {
				s.at = len(s.text)
				return
			}
		}
	case '{':
		s.next()
		for {
			s.blank()
			if s.end() || s.peek() == '}' {
				s.next()
				return
			}
			before := s.at
			s.pair(path)
			s.done(path)
			s.blank()
			if s.peek() == ',' {
				s.next()
			}
			if s.at == before {
				s.at = len(s.text)
				return
			}
		}
	default:
		for !s.end() && !strings.ContainsRune(",]}#\n", rune(s.peek())) {
			s.next()
		}
	}
}

// note records the first place of a key and of its value; a zero place says nothing.
func (s *locator) note(path string, key, value place) {
	if _, seen := s.out.keys[path]; !seen && key.line > 0 {
		s.out.keys[path] = key
	}
	if _, seen := s.out.values[path]; !seen && value.line > 0 {
		s.out.values[path] = value
	}
}
