//go:build unix

package capture

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// pollEvery is how often Print looks for new lines when it follows.
const pollEvery = 200 * time.Millisecond

// Source is one log to print. Name is shown before its lines if there are
// several.
type Source struct {
	Name string
	File string // as given to Start; its rotated files are found beside it
}

// Print writes the last n lines of the sources taken together (all of them if
// n is negative), in the order of their times. With follow it then goes on
// until ctx ends, over rotations, and returns nil. A log that does not exist
// yet is no error. It returns the first error of w or of reading.
func Print(ctx context.Context, w io.Writer, sources []Source, n int, follow bool) error {
	p := &printer{w: bufio.NewWriter(w)}
	for _, s := range sources {
		if len(sources) > 1 {
			p.width = max(p.width, len(s.Name))
		}
	}
	var lines []line
	followers := make([]*follower, len(sources))
	for i, s := range sources {
		f := &follower{source: s}
		defer f.close()
		last, err := f.last(n)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", s.Name, err)
		}
		lines = append(lines, last...)
		followers[i] = f
	}
	sortLines(lines)
	if n >= 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	if err := p.print(lines); err != nil || !follow {
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		lines = lines[:0]
		for _, f := range followers {
			more, err := f.next()
			if err != nil {
				return fmt.Errorf("read the log of %s: %w", f.source.Name, err)
			}
			lines = append(lines, more...)
		}
		sortLines(lines)
		if err := p.print(lines); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// line is one line of a log with its time, without its newline.
type line struct {
	name, text string
}

// stamp is what lines are sorted by; a line without one sorts first.
func (l line) stamp() string {
	if len(l.text) < len(stampLayout) || l.text[len(stampLayout)-1] != 'Z' {
		return ""
	}
	return l.text[:len(stampLayout)]
}

func sortLines(lines []line) {
	slices.SortStableFunc(lines, func(a, b line) int { return strings.Compare(a.stamp(), b.stamp()) })
}

type printer struct {
	w     *bufio.Writer
	width int // of the names; 0 prints none
}

func (p *printer) print(lines []line) error {
	for _, l := range lines {
		if p.width > 0 {
			fmt.Fprintf(p.w, "%-*s | ", p.width, l.name)
		}
		p.w.WriteString(l.text)
		p.w.WriteByte('\n')
	}
	return p.w.Flush()
}
