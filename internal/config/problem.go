package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a config file. Line and Col count
// from 1 and are 0 when the place is unknown; Col counts characters.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Key     string `json:"key,omitempty"`     // full path, such as role.kv.listen[0].address
	Msg     string `json:"msg"`               // reason, and what to do
	Nearest string `json:"nearest,omitempty"` // the valid key or value that was probably meant
}

// String is "file:line:col: key: reason; did you mean ...?".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.Msg)
	if p.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", p.Nearest)
	}
	return b.String()
}

// Problems is the error that [Load] returns: everything that is wrong, in the
// order of the file.
type Problems []Problem

// Error has one line per problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
