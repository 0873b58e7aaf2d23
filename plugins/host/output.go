package host

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// maxLine is where a line of a plugin's output is broken, in bytes.
const maxLine = 16 << 10

// readLines calls each for every line of r until r ends. Lines longer than
// maxLine arrive in pieces, so that a plugin cannot make this process grow.
func readLines(r io.Reader, each func(line string)) {
	b := bufio.NewReaderSize(r, maxLine)
	continued := false // the newline of a line that was just full is no empty line
	for {
		line, err := b.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		text := strings.TrimRight(string(line), "\r\n")
		if text != "" || (len(line) > 0 && !continued) {
			each(text)
		}
		continued = full
		if err != nil && !full {
			return
		}
	}
}

// plainLine turns a line of hclog's JSON into text, as a plugin that logs with
// hclog writes it, and returns every other line as it is. The line is the
// plugin's word and may hold anything.
func plainLine(line string) string {
	if !strings.HasPrefix(line, "{") {
		return line
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return line
	}
	message, ok := fields["@message"].(string)
	if !ok {
		return line
	}
	var b strings.Builder
	if level, ok := fields["@level"].(string); ok {
		fmt.Fprintf(&b, "[%s] ", strings.ToUpper(level))
	}
	if module, ok := fields["@module"].(string); ok && module != "" {
		fmt.Fprintf(&b, "%s: ", module)
	}
	b.WriteString(message)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if strings.HasPrefix(key, "@") {
			continue
		}
		value, err := json.Marshal(fields[key])
		if err != nil {
			continue
		}
		fmt.Fprintf(&b, " %s=%s", key, value)
	}
	return strings.ReplaceAll(b.String(), "\n", `\n`)
}

// lastWords keeps the last few lines that a process wrote, for errors. Safe
// for concurrent use.
type lastWords struct {
	mu    sync.Mutex
	lines []string
}

const lastWordsKept = 4

func (l *lastWords) add(line string) {
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "") + "..."
	}
	if strings.TrimSpace(line) == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// A crash says what it is in its first lines and goes on with stacks.
	if len(l.lines) > 0 && isPanic(l.lines[0]) {
		if len(l.lines) < lastWordsKept {
			l.lines = append(l.lines, line)
		}
		return
	}
	if isPanic(line) {
		l.lines = nil
	}
	l.lines = append(l.lines, line)
	if len(l.lines) > lastWordsKept {
		l.lines = l.lines[1:]
	}
}

func isPanic(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, " | ")
}

// lineWriter hands what go-plugin copies from a plugin's streams on by lines.
// Safe for concurrent use.
type lineWriter struct {
	mu   sync.Mutex
	rest []byte
	each func(line string)
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		i := slices.Index(w.rest, '\n')
		if i < 0 && len(w.rest) < maxLine {
			return len(b), nil
		}
		if i < 0 || i > maxLine {
			i = maxLine - 1
			w.each(string(w.rest[:i]))
			w.rest = w.rest[i:]
			continue
		}
		w.each(strings.TrimRight(string(w.rest[:i]), "\r"))
		w.rest = w.rest[i+1:]
	}
}
