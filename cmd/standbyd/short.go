package main

import (
	"strings"
	"unicode/utf8"
)

const (
	// shortText is how much of a reason, an exit or an error a table shows;
	// `status ROLE/WORKER` and -o json have the whole.
	shortText = 140
	// shortWhy is the same for a role, whose reason ends with what to type.
	shortWhy = 400
)

// short is a text on one line, and cut off where it is longer than n.
func short(s string, n int) string {
	s = oneLine(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:n]), " ,;:") + " …"
}
