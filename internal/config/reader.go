package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reader walks a decoded document, fills in the sections and collects
// everything that is wrong on the way.
type reader struct {
	files    []string // as messages name them: the main one, then its parts
	dir      string   // absolute folder of the main file: relative paths start here
	at       positions
	partial  bool // one of the files is no valid TOML
	problems []Problem
	warnings []Problem
	envLines map[string]fileLine // of the variables that an env_file sets, by the path that they would have in env
	workers  map[string]string   // where role.NAME[INDEX] is described: the path of that index key
}

// node is one value of the document and its path.
type node struct {
	path  string
	value any
}

func (r *reader) problem(at place, key, nearest, format string, args ...any) Problem {
	return Problem{File: r.files[at.file], Line: at.line, Col: at.col, Key: key, Msg: fmt.Sprintf(format, args...), Nearest: nearest}
}

// bad reports a wrong value, at the value.
func (r *reader) bad(path, format string, args ...any) {
	r.problems = append(r.problems, r.problem(r.placeOf(path), path, "", format, args...))
}

// badNear is bad with the value that was probably meant.
func (r *reader) badNear(path, near, format string, args ...any) {
	r.problems = append(r.problems, r.problem(r.placeOf(path), path, near, format, args...))
}

// badKey reports a wrong key, at the key.
func (r *reader) badKey(path, near, format string, args ...any) {
	r.problems = append(r.problems, r.problem(r.at.keys[path], path, near, format, args...))
}

// warn reports what stops nothing.
func (r *reader) warn(path, format string, args ...any) {
	r.warnings = append(r.warnings, r.problem(r.placeOf(path), path, "", format, args...))
}

// placeOf is where the value stands, else its key, else the nearest table
// around it: a key that is missing is reported at its table.
func (r *reader) placeOf(path string) place {
	for {
		if at, ok := r.at.values[path]; ok {
			return at
		}
		if at, ok := r.at.keys[path]; ok {
			return at
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return place{}
		}
		path = path[:cut]
	}
}

// set tells whether the file has the key.
func (r *reader) set(path string) bool {
	_, ok := r.at.keys[path]
	return ok
}

// lineOf names the place of a value in a message that stands in the file of
// another one: "line 5", or "config.d/web.toml:5".
func (r *reader) lineOf(path string, from int) string {
	at := r.placeOf(path)
	if at.file == from {
		return fmt.Sprintf("line %d", at.line)
	}
	return fmt.Sprintf("%s:%d", r.files[at.file], at.line)
}

// ordered returns the keys of a table in the order of the files.
func (r *reader) ordered(path string, table map[string]any) []string {
	keys := slices.Sorted(maps.Keys(table))
	slices.SortStableFunc(keys, func(a, b string) int {
		return r.at.keys[joinPath(path, a)].before(r.at.keys[joinPath(path, b)])
	})
	return keys
}

// table returns n as a table.
func (r *reader) table(n node, example string) (map[string]any, bool) {
	switch v := n.value.(type) {
	case map[string]any:
		return v, true
	case []map[string]any:
		r.bad(n.path, "is a list of tables; write one table: %s", example)
	default:
		r.bad(n.path, "is %s; write a table: %s", kindOf(n.value), example)
	}
	return nil, false
}

// tables returns n as a list of tables: [[name]] or an array of inline tables.
func (r *reader) tables(n node, example string) []node {
	var out []node
	switch v := n.value.(type) {
	case []map[string]any:
		for i, t := range v {
			out = append(out, node{indexPath(n.path, i), t})
		}
	case []any:
		for i, t := range v {
			if _, ok := t.(map[string]any); !ok {
				r.bad(indexPath(n.path, i), "is %s; write a list of tables: %s", kindOf(t), example)
				continue
			}
			out = append(out, node{indexPath(n.path, i), t})
		}
	case map[string]any:
		r.badKey(n.path, "", "is a single table; there can be several, so write it with two brackets: %s", example)
	default:
		r.bad(n.path, "is %s; write a list of tables: %s", kindOf(n.value), example)
	}
	return out
}

// section reads the plain keys of one table into the target; keys of others
// (nested tables that the caller reads) are named in nested.
func section[T any](r *reader, path string, table map[string]any, keys []key[T], nested []string, into *T) {
	valid := slices.Clone(nested)
	for _, k := range keys {
		valid = append(valid, k.name)
	}
	for _, name := range r.ordered(path, table) {
		if slices.Contains(nested, name) {
			continue
		}
		full := joinPath(path, name)
		i := slices.IndexFunc(keys, func(k key[T]) bool { return k.name == name })
		if i < 0 {
			r.badKey(full, nearest(name, valid), "unknown key")
			continue
		}
		keys[i].read(r, node{full, table[name]}, into)
	}
}

// kindOf names a TOML value's type with its article.
func kindOf(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the string %q", v)
	case int64:
		return fmt.Sprintf("the integer %d", v)
	case float64:
		return fmt.Sprintf("the float %v", v)
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	case []any:
		return "a list"
	case []map[string]any:
		return "a list of tables"
	case map[string]any:
		return "a table"
	default:
		return "a date or time"
	}
}
