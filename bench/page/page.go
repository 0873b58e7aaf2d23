// Package page is what the benchmark programs share of their report: the
// machine that they ran on, and one page to which each writes its own part.
package page

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const title = "# Benchmarks\n"

func marks(part string) (begin, end string) {
	return fmt.Sprintf("<!-- %s: begin -->\n", part), fmt.Sprintf("<!-- %s: end -->\n", part)
}

// Update replaces one part of the page in file by text, and leaves the other
// parts as they are. A part that is not there yet follows the others; a page
// that is not there yet is begun.
func Update(file, part, text string) error {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, []byte(replace(string(old), part, text)), 0o644)
}

func replace(old, part, text string) string {
	begin, end := marks(part)
	section := begin + strings.TrimRight(text, "\n") + "\n" + end
	if from := strings.Index(old, begin); from >= 0 {
		if n := strings.Index(old[from:], end); n >= 0 {
			return old[:from] + section + old[from+n+len(end):]
		}
	}
	if !strings.HasPrefix(old, title) || !strings.Contains(old, ": begin -->\n") {
		return title + "\n" + section // nothing, or nothing with parts
	}
	return strings.TrimRight(old, "\n") + "\n\n" + section
}
