package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// twice is what the decoder says of a key that it meets again.
var twice = regexp.MustCompile(`^Key '.*' (has already been defined|was already created and cannot be used as an array)`)

// syntax makes a Problem of an error of the TOML decoder.
func (r *reader) syntax(file int, text string, err error) Problem {
	p := Problem{File: r.files[file], Msg: "not valid TOML: " + err.Error()}
	if at := notUTF8(text); at >= 0 {
		p.Line, p.Col = strings.Count(text[:at], "\n")+1, utf8.RuneCountInString(text[strings.LastIndexByte(text[:at], '\n')+1:at])+1
		p.Msg = fmt.Sprintf("not valid TOML: the byte 0x%02X is no UTF-8; save the file in that encoding", text[at])
		return p
	}
	var bad toml.ParseError
	if !errors.As(err, &bad) {
		return p
	}
	// the decoder's own line and column count the culprit's end, if that is the end of a line
	start := min(max(bad.Position.Start, 0), len(text))
	if _, last := utf8.DecodeLastRuneInString(text); endOfFile(bad.Message, text) && start >= len(text)-last {
		start = len(text) // and its last letter, if that is the end of the file
	}
	before := text[:start]
	p.Line = strings.Count(before, "\n") + 1
	p.Col = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	p.Msg = "not valid TOML: " + strings.ReplaceAll(strings.TrimSuffix(bad.Message, "."), `'\n'`, "the end of the line")
	if endOfFile(bad.Message, text) {
		p.Msg = strings.ReplaceAll(p.Msg, `'\x00'`, "the end of the file")
	}
	if m := twice.FindStringSubmatch(bad.Message); m != nil {
		end := strings.IndexByte(text[start:], '\n')
		if end < 0 {
			end = len(text) - start
		}
		path, at := culprit(text[:start+end])
		list := strings.HasPrefix(m[1], "was")
		if list {
			path = strings.TrimSuffix(path, "[0]")
		}
		p.Key = path
		switch first := at.keys[path]; {
		case first.line == 0:
		case list:
			p.Msg = fmt.Sprintf("not valid TOML: is a list of tables here and something else in line %d", first.line)
		default:
			p.Msg = fmt.Sprintf("not valid TOML: is there already, in line %d; TOML has every key and table once", first.line)
		}
		return p
	}
	path, at := culprit(before)
	if p.Key = path; path == "" {
		p.Key = bad.LastKey
	}
	if strings.HasPrefix(bad.Message, "expected value but found") {
		p.Msg += "; text stands in quotes"
	}
	if begun := at.values[path]; unclosed(bad.Message) && begun.line > 0 && begun.line < p.Line {
		p.Msg += fmt.Sprintf("; what begins in line %d is not closed", begun.line)
	}
	return p
}

// notUTF8 is where a text stops being UTF-8, as TOML has to be; -1 if it is.
func notUTF8(text string) int {
	for i, c := range text {
		if c == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return -1
}

// endOfFile tells whether the decoder wanted more than the text has.
func endOfFile(message, text string) bool {
	return strings.HasPrefix(message, "unexpected EOF") || strings.Contains(message, `'\x00'`) && !strings.Contains(text, "\x00")
}

// unclosed tells whether the decoder was in the middle of a list or a table.
func unclosed(message string) bool {
	return strings.HasPrefix(message, "expected a comma")
}
