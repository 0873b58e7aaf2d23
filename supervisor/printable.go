package supervisor

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// printable makes a text that comes from a plugin, a worker or a file safe to
// show in a terminal: what is not printable, or no UTF-8, is written as Go
// writes it in a string (\x1b, \x00, \xff). Line feeds and tabs stay; who
// prints a table folds them. A printable text stays as it is.
func printable(s string) string {
	clean := true
	for i := 0; i < len(s) && clean; {
		r, n := utf8.DecodeRuneInString(s[i:])
		clean, i = shows(r, n), i+n
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if shows(r, n) {
			b.WriteString(s[i : i+n])
		} else {
			quoted := strconv.Quote(s[i : i+n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += n
	}
	return b.String()
}

func shows(r rune, n int) bool {
	return r == '\n' || r == '\t' || strconv.IsPrint(r) && (r != utf8.RuneError || n > 1)
}

// foreignError is an error of a hook or a launch with a printable text.
type foreignError struct {
	error
	text string
}

func (e *foreignError) Error() string { return e.text }
func (e *foreignError) Unwrap() error { return e.error }

// printableError is err, with another text if it has to be.
func printableError(err error) error {
	if err == nil {
		return nil
	}
	raw := err.Error()
	if text := printable(raw); text != raw {
		return &foreignError{err, text}
	}
	return err
}
