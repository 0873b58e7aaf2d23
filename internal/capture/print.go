//go:build unix

package capture

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// pollEvery is how often Print looks for new lines when it follows.
const pollEvery = 200 * time.Millisecond

// Source is one log to print. Name is shown before its lines if there are
// several.
type Source struct {
	Name string
	File string // as given to Start; its rotated files are found beside it
	Role string // for JSON; may be empty
}

// PrintOptions say what Print shows, and how. The zero value prints nothing.
type PrintOptions struct {
	Lines  int            // the last ones; all if negative
	Follow bool           // go on with new lines until ctx ends
	Since  time.Time      // only lines from then on; zero: all
	Grep   *regexp.Regexp // only lines whose text matches; nil: all
	JSON   bool           // an object a line, see Entry
	Color  bool           // names in colours
	Escape bool           // control characters as \xNN, for a terminal
}

// Print writes the last lines of the sources taken together, in the order of
// their times. With Follow it then goes on, over rotations, until ctx ends,
// and returns nil. A log that does not exist yet is no error. It returns the
// first error of w or of reading.
func Print(ctx context.Context, w io.Writer, sources []Source, o PrintOptions) error {
	p := &printer{w: bufio.NewWriter(w), options: o, colors: map[*Source]string{}}
	var lines []line
	followers := make([]*follower, len(sources))
	for i, s := range sources {
		f := &follower{source: s, since: o.Since, keep: o.keep()}
		if len(sources) > 1 {
			p.width = max(p.width, len(s.Name))
		}
		p.colors[&f.source] = palette[i%len(palette)]
		defer f.close()
		last, err := f.last(o.Lines)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", s.Name, err)
		}
		lines = append(lines, last...)
		followers[i] = f
	}
	sortLines(lines)
	if o.Lines >= 0 && len(lines) > o.Lines {
		lines = lines[len(lines)-o.Lines:]
	}
	if err := p.print(lines); err != nil || !o.Follow {
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

// keep decides about one line; nil if all are kept.
func (o *PrintOptions) keep() func(line) bool {
	if o.Since.IsZero() && o.Grep == nil {
		return nil
	}
	since := ""
	if !o.Since.IsZero() {
		since = o.Since.UTC().Format(stampLayout)
	}
	return func(l line) bool {
		at, text := l.parts()
		return at >= since && (o.Grep == nil || o.Grep.MatchString(text))
	}
}

// line is one line of a log with its time, without its newline.
type line struct {
	source *Source
	text   string
}

// parts takes the time, empty if there is none, from the text.
func (l line) parts() (at, text string) {
	if at = l.stamp(); at == "" {
		return "", l.text
	}
	return at, strings.TrimPrefix(l.text[len(at):], " ")
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

// palette: colours that can be read on dark and on light ground.
var palette = []string{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[31m"}

const uncolored = "\x1b[0m"

type printer struct {
	w       *bufio.Writer
	options PrintOptions
	width   int // of the names; 0 prints none
	colors  map[*Source]string
}

// Entry is a line as JSON. A line that is a JSON object itself is in Object,
// any other in Text.
type Entry struct {
	Time   string          `json:"time,omitempty"`
	Role   string          `json:"role,omitempty"`
	Worker string          `json:"worker"`
	Text   *string         `json:"text,omitempty"`
	Object json.RawMessage `json:"object,omitempty"`
}

func (p *printer) print(lines []line) error {
	for _, l := range lines {
		if p.options.JSON {
			if err := p.printJSON(l); err != nil {
				return err
			}
			continue
		}
		if p.width > 0 {
			name := fmt.Sprintf("%-*s | ", p.width, l.source.Name)
			if p.options.Color {
				name = p.colors[l.source] + name + uncolored
			}
			p.w.WriteString(name)
		}
		text := l.text
		if p.options.Escape {
			text = escape(text)
		}
		p.w.WriteString(text)
		p.w.WriteByte('\n')
	}
	return p.w.Flush()
}

func (p *printer) printJSON(l line) error {
	at, text := l.parts()
	e := Entry{Time: at, Role: l.source.Role, Worker: l.source.Name}
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") && json.Valid([]byte(trimmed)) {
		e.Object = json.RawMessage(trimmed)
	} else {
		e.Text = &text
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	p.w.Write(b)
	return p.w.WriteByte('\n')
}

// escape makes visible what a terminal would obey, and bytes that are no text.
func escape(text string) string {
	clean := func(r rune) bool { return r == '\t' || r != utf8.RuneError && !unicode.IsControl(r) }
	if strings.IndexFunc(text, func(r rune) bool { return !clean(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if clean(r) || r == utf8.RuneError && n > 1 {
			b.WriteString(text[i : i+n])
		} else {
			for _, c := range []byte(text[i : i+n]) {
				fmt.Fprintf(&b, "\\x%02x", c)
			}
		}
		i += n
	}
	return b.String()
}
