package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// key is one setting: how messages and docs/config.md describe it, how it is
// read and how the effective config shows it.
type key[T any] struct {
	name string
	kind string
	def  string // default as docs/config.md shows it; "" is taken from the section's defaults
	doc  string
	read func(r *reader, n node, into *T)
	show func(*T) any // string, int64, bool, []string or map[string]any; nil is left out
}

// within is a kind with the range that its values may have.
func within(kind string, lo, hi any) string { return fmt.Sprintf("%s, %v to %v", kind, lo, hi) }

func duration[T any](name string, field func(*T) *time.Duration, lo, hi time.Duration, doc string) key[T] {
	return key[T]{
		name: name, kind: within("duration", short(lo), short(hi)), doc: doc,
		show: func(t *T) any { return short(*field(t)) },
		read: func(r *reader, n node, into *T) {
			text, ok := n.value.(string)
			if !ok {
				switch n.value.(type) {
				case int64, float64:
					r.bad(n.path, "%v is a bare number; a duration is a string with a unit, such as \"%vms\" or \"%vs\"", n.value, n.value, n.value)
				default:
					r.bad(n.path, "is %s; a duration is a string with a unit, such as \"100ms\"", kindOf(n.value))
				}
				return
			}
			d, err := time.ParseDuration(text)
			if err != nil {
				if _, bare := strconv.ParseFloat(text, 64); bare == nil {
					r.bad(n.path, "%q has no unit; write \"%sms\", \"%ss\" or \"%sm\"", text, text, text, text)
					return
				}
				r.bad(n.path, "%q is not a duration; write a number with a unit (us, ms, s, m, h), such as \"100ms\" or \"1m30s\"", text)
				return
			}
			if d < lo || d > hi {
				r.bad(n.path, "%q is out of range: at least %s, at most %s", text, short(lo), short(hi))
				return
			}
			*field(into) = d
		},
	}
}

// short writes a duration without the zero parts that time.Duration shows.
func short(d time.Duration) string {
	s := d.String()
	s = strings.TrimSuffix(s, "0s")
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if s == "" || !strings.ContainsAny(s[len(s)-1:], "hms") {
		return d.String()
	}
	return s
}

func integer[T any](name string, field func(*T) *int, lo, hi int, doc string) key[T] {
	return key[T]{
		name: name, kind: within("integer", lo, hi), doc: doc,
		show: func(t *T) any { return int64(*field(t)) },
		read: func(r *reader, n node, into *T) {
			v, ok := n.value.(int64)
			if !ok {
				r.bad(n.path, "is %s; write an integer from %d to %d", kindOf(n.value), lo, hi)
				return
			}
			if v < int64(lo) || v > int64(hi) {
				r.bad(n.path, "%d is out of range: from %d to %d", v, lo, hi)
				return
			}
			*field(into) = int(v)
		},
	}
}

func boolean[T any](name string, field func(*T) *bool, doc string) key[T] {
	return key[T]{
		name: name, kind: "boolean", doc: doc,
		show: func(t *T) any { return *field(t) },
		read: func(r *reader, n node, into *T) {
			v, ok := n.value.(bool)
			if !ok {
				r.bad(n.path, "is %s; write true or false without quotes", kindOf(n.value))
				return
			}
			*field(into) = v
		},
	}
}

// text is a string that check (which may be nil) finds acceptable: it returns
// "" or the reason against it.
func text[T any](name string, field func(*T) *string, check func(string) string, doc string) key[T] {
	return key[T]{
		name: name, kind: "string", doc: doc,
		show: func(t *T) any {
			if *field(t) == "" {
				return nil
			}
			return *field(t)
		},
		read: func(r *reader, n node, into *T) {
			v, ok := n.value.(string)
			if !ok {
				r.bad(n.path, "is %s; write a string", kindOf(n.value))
				return
			}
			if strings.ContainsRune(v, 0) {
				r.bad(n.path, "contains a zero byte")
				return
			}
			if check != nil {
				if reason := check(v); reason != "" {
					r.bad(n.path, "%s", reason)
					return
				}
			}
			*field(into) = v
		},
	}
}

// account is a user or group: a name, or a number with or without quotes.
func account[T any](name string, field func(*T) *string, doc string) key[T] {
	k := text(name, field, nil, doc)
	asText := k.read
	k.kind = "string or integer"
	k.read = func(r *reader, n node, into *T) {
		if v, ok := n.value.(int64); ok && v >= 0 && v < 1<<32-1 {
			*field(into) = strconv.FormatInt(v, 10)
			return
		}
		asText(r, n, into)
	}
	return k
}

// choice is one of a few words.
func choice[T any, S ~string](name string, field func(*T) *S, words []S, doc string) key[T] {
	valid := make([]string, len(words))
	for i, w := range words {
		valid[i] = string(w)
	}
	quoted := make([]string, len(valid))
	for i, w := range valid {
		quoted[i] = strconv.Quote(w)
	}
	list := strings.Join(quoted, ", ")
	return key[T]{
		name: name, kind: list, doc: doc,
		show: func(t *T) any { return string(*field(t)) },
		read: func(r *reader, n node, into *T) {
			v, ok := n.value.(string)
			if !ok {
				r.bad(n.path, "is %s; write one of %s", kindOf(n.value), list)
				return
			}
			if !slices.Contains(valid, v) {
				r.badNear(n.path, nearest(v, valid), "%q is not one of %s", v, list)
				return
			}
			*field(into) = S(v)
		},
	}
}

// path is a file or folder; a relative one starts at the config file's folder.
func path[T any](name string, field func(*T) *string, doc string) key[T] {
	k := text(name, field, func(s string) string {
		if s == "" {
			return "is empty; write a path"
		}
		return ""
	}, doc)
	asText := k.read
	k.kind = "path"
	k.read = func(r *reader, n node, into *T) {
		before := *field(into)
		*field(into) = ""
		asText(r, n, into)
		if *field(into) == "" {
			*field(into) = before
			return
		}
		*field(into) = r.resolve(*field(into))
	}
	return k
}

// resolve makes a path absolute, from the folder of the config file.
func (r *reader) resolve(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(r.dir, p)
}

// command is an argv. A first word with a slash is a path; without one it is
// looked up in PATH when it is started.
func command[T any](name string, field func(*T) *[]string, doc string) key[T] {
	return key[T]{
		name: name, kind: "list of strings", doc: doc,
		show: func(t *T) any { return *field(t) },
		read: func(r *reader, n node, into *T) {
			argv, ok := r.strings(n, `["./bin/worker", "--flag"]`)
			if !ok {
				return
			}
			if len(argv) == 0 || argv[0] == "" {
				r.bad(n.path, "is empty; the first element is the program to start")
				return
			}
			if strings.ContainsRune(argv[0], filepath.Separator) {
				argv[0] = r.resolve(argv[0])
			}
			*field(into) = argv
		},
	}
}

// lines is a list of any strings.
func lines[T any](name string, field func(*T) *[]string, doc string) key[T] {
	return key[T]{
		name: name, kind: "list of strings", doc: doc,
		show: func(t *T) any {
			if len(*field(t)) == 0 {
				return nil
			}
			return *field(t)
		},
		read: func(r *reader, n node, into *T) {
			if v, ok := r.strings(n, `["first", "second"]`); ok {
				*field(into) = v
			}
		},
	}
}

func (r *reader) strings(n node, example string) ([]string, bool) {
	list, ok := n.value.([]any)
	if !ok {
		if s, isText := n.value.(string); isText && strings.TrimSpace(s) != "" {
			r.bad(n.path, "is the string %q; write a list of strings, no shell splits it: %s", s, tomlValue(strings.Fields(s)))
			return nil, false
		}
		r.bad(n.path, "is %s; write a list of strings: %s", kindOf(n.value), example)
		return nil, false
	}
	out, good := make([]string, len(list)), true
	for i, v := range list {
		s, ok := v.(string)
		switch {
		case !ok:
			r.bad(indexPath(n.path, i), "is %s; every element is a string, so put it in quotes", kindOf(v))
			good = false
		case strings.ContainsRune(s, 0):
			r.bad(indexPath(n.path, i), "contains a zero byte")
			good = false
		}
		out[i] = s
	}
	return out, good
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedEnv tells whether standbyd sets the variable for its workers itself.
func reservedEnv(name string) bool {
	return name == "NOTIFY_SOCKET" || strings.HasPrefix(name, "STANDBYD_") || strings.HasPrefix(name, "LISTEN_")
}

const kindVariables = "table of strings"

// environment is a table of strings.
func environment[T any](name string, field func(*T) *map[string]string, doc string) key[T] {
	return key[T]{
		name: name, kind: kindVariables, doc: doc,
		show: func(t *T) any {
			if len(*field(t)) == 0 {
				return nil
			}
			m := map[string]any{}
			for k := range *field(t) {
				m[k] = hidden // it may be a secret
			}
			return m
		},
		read: func(r *reader, n node, into *T) {
			table, ok := r.table(n, fmt.Sprintf(`%s = { NAME = "value" }`, name))
			if !ok {
				return
			}
			out := map[string]string{}
			for _, k := range r.ordered(n.path, table) {
				full := joinPath(n.path, k)
				v, isText := table[k].(string)
				switch {
				case !envName.MatchString(k):
					r.badKey(full, "", "%q cannot be the name of an environment variable", k)
				case reservedEnv(k):
					r.badKey(full, "", "standbyd sets %s itself; choose another name", k)
				case !isText:
					r.bad(full, "is %s; values of the environment are strings, so put it in quotes", kindOf(table[k]))
				case strings.ContainsRune(v, 0):
					r.bad(full, "contains a zero byte")
				default:
					out[k] = v
				}
			}
			*field(into) = out
		},
	}
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}}

// size is a number of bytes: an integer, or a string with a unit.
func size[T any](name string, field func(*T) *int64, lo, hi int64, doc string) key[T] {
	return key[T]{
		name: name, kind: within("size", formatSize(lo), formatSize(hi)), doc: doc,
		show: func(t *T) any { return formatSize(*field(t)) },
		read: func(r *reader, n node, into *T) {
			var v int64
			switch given := n.value.(type) {
			case int64:
				v = given
			case string:
				parsed, ok := parseSize(given)
				if _, err := strconv.ParseUint(given, 10, 64); err == nil && given != "0" {
					r.bad(n.path, "%q has no unit; write one (KiB, MiB, GiB), such as \"10MiB\", or bytes without quotes", given)
					return
				}
				if !ok {
					r.bad(n.path, "%q is not a size; write a number with a unit (KiB, MiB, GiB), such as \"10MiB\"", given)
					return
				}
				v = parsed
			default:
				r.bad(n.path, "is %s; write a size, such as \"10MiB\"", kindOf(n.value))
				return
			}
			if v < lo || v > hi {
				r.bad(n.path, "%s is out of range: from %s to %s", formatSize(v), formatSize(lo), formatSize(hi))
				return
			}
			*field(into) = v
		},
	}
}

func parseSize(s string) (int64, bool) {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			return 0, false
		}
		return n * u.bytes, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}

func formatSize(n int64) string {
	for _, u := range sizeUnits[:4] {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
