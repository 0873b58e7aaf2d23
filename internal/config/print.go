package config

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Print writes the effective config as TOML: every key with the value that is
// in force, paths absolute, and in a comment where it comes from: FILE:LINE,
// default, or the variable of the environment. Reading it back gives the same
// Config, except for the values of environment variables: they may be secrets,
// and are shown as "***", those of env_file in comments.
func (c *Config) Print(w io.Writer) error {
	var b strings.Builder
	for i, s := range c.sections() {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(s.header + "\n")
		lines, width := make([]string, len(s.settings)), 0
		for j, set := range s.settings {
			name := strings.TrimPrefix(strings.TrimPrefix(set.Key, s.path), ".")
			lines[j] = name + " = " + tomlValue(set.Value)
			if set.apart {
				lines[j] = "# " + lines[j]
			}
			if n := utf8.RuneCountInString(lines[j]); n <= commentColumn {
				width = max(width, n)
			}
		}
		for j, set := range s.settings {
			fmt.Fprintf(&b, "%-*s  # %s\n", width, lines[j], set.source())
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// commentColumn is the widest line that others are aligned with.
const commentColumn = 48

// tomlValue writes any value that the TOML decoder returns, on one line.
func tomlValue(v any) string {
	switch v := v.(type) {
	case string:
		return tomlString(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		s := strconv.FormatFloat(v, 'g', -1, 64)
		switch {
		case s == "+Inf":
			return "inf"
		case s == "-Inf" || s == "NaN":
			return strings.ToLower(s)
		case !strings.ContainsAny(s, ".e"):
			return s + ".0"
		}
		return s
	case []string:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = tomlString(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = tomlValue(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []map[string]any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = tomlValue(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, joinPath("", k)+" = "+tomlValue(v[k]))
		}
		if len(parts) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case time.Time:
		// the decoder marks local dates and times by the name of their location
		switch v.Location().String() {
		case "datetime-local":
			return v.Format("2006-01-02T15:04:05.999999999")
		case "date-local":
			return v.Format("2006-01-02")
		case "time-local":
			return v.Format("15:04:05.999999999")
		}
		return v.Format(time.RFC3339Nano)
	default:
		return tomlString(fmt.Sprint(v))
	}
}

// tomlString quotes a string: TOML has fewer escapes than Go.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
