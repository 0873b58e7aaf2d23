package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PartsFolder is the folder beside a config file whose *.toml files are read
// after it, in the order of their names (of their bytes, as ls sorts in the C
// locale).
const PartsFolder = "config.d"

// part is one decoded file, and where its keys stand.
type part struct {
	document map[string]any
	at       positions
}

// parts reads the files of the folder beside the main file. Everything in them
// is a role, or more of one: [supervisor] stands in the main file alone, because
// the daemon is found by it, also while a part is broken.
func (r *reader) parts() (list []part, ok bool) {
	names, err := r.partNames()
	if err != nil {
		r.unreadable(filepath.Join(filepath.Dir(r.files[0]), PartsFolder), err)
		return nil, false
	}
	ok = true
	for _, name := range names {
		number := len(r.files)
		r.files = append(r.files, name)
		raw, err := readFile(name)
		if err != nil {
			r.unreadable(name, err)
			ok = false
			continue
		}
		p, good := r.parse(number, raw)
		if ok = ok && good; good {
			list = append(list, p)
		}
	}
	return list, ok
}

// partNames lists the parts. What does not end in .toml is none, and neither is
// a name that begins with a dot: editors and package systems put their own
// files beside the real ones.
func (r *reader) partNames() (names []string, err error) {
	folder := filepath.Join(filepath.Dir(r.files[0]), PartsFolder)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(folder); errors.Is(lerr, fs.ErrNotExist) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".toml") && !strings.HasPrefix(name, ".") {
			names = append(names, filepath.Join(folder, name))
		}
	}
	return names, nil
}

// unreadable reports a file or folder that is there and cannot be read.
func (r *reader) unreadable(name string, err error) {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	msg := strings.TrimPrefix(err.Error(), "read config file "+name+": ")
	r.problems = append(r.problems, Problem{File: name, Msg: "cannot be read: " + msg})
}

// merge adds what the parts say to the main file's document, and makes one set
// of places of all.
func (r *reader) merge(main part, parts []part) {
	r.at = main.at
	for _, p := range parts {
		shifted := map[string]int{}
		for _, name := range p.ordered("", p.document) {
			if name == "role" {
				r.mergeKey(main.document, p, "", name, shifted)
				continue
			}
			here := p.at.keys[joinPath("", name)]
			if name == "supervisor" {
				r.problems = append(r.problems, r.problem(here, name, "",
					"stands in %s alone: the daemon is found by it; a part holds tables [role.NAME]", r.files[0]))
				continue
			}
			r.problems = append(r.problems, r.problem(here, joinPath("", name), nearest(name, []string{"role"}),
				"unknown table; there is [role.NAME]"))
		}
		r.at.add(p.at, shifted)
	}
}

func (p part) ordered(path string, table map[string]any) []string {
	return (&reader{at: p.at}).ordered(path, table)
}

// mergeKey adds one key of a part to the table at the path. Tables are merged
// and lists of tables appended; shifted says by how much the latter's indexes
// grow. Any other key is set once.
func (r *reader) mergeKey(into map[string]any, p part, path, name string, shifted map[string]int) {
	full, value := joinPath(path, name), p.document[name]
	old, there := into[name]
	if !there {
		into[name] = value
		return
	}
	oldTable, oldIs := old.(map[string]any)
	newTable, newIs := value.(map[string]any)
	if oldIs && newIs {
		for _, k := range p.ordered(full, newTable) {
			r.mergeKey(oldTable, part{newTable, p.at}, full, k, shifted)
		}
		return
	}
	if a, b := tablesOf(old), tablesOf(value); len(a) > 0 && len(b) > 0 {
		shifted[full] = len(a)
		into[name] = append(a, b...)
		return
	}
	at := p.at.keys[full]
	r.problems = append(r.problems, r.problem(at, full, "", "is set in %s already; a key is set once: remove one of the two", r.lineOf(full, at.file)))
}

// tablesOf is v as a list of tables, or nil.
func tablesOf(v any) []map[string]any {
	switch v := v.(type) {
	case []map[string]any:
		return v
	case []any:
		var out []map[string]any
		for _, e := range v {
			t, ok := e.(map[string]any)
			if !ok {
				return nil
			}
			out = append(out, t)
		}
		return out
	}
	return nil
}

// add takes over the places of another file. shifted has, for each list that
// was appended to one that was there, how long that one was.
func (p positions) add(other positions, shifted map[string]int) {
	for _, m := range []struct{ into, from map[string]place }{{p.keys, other.keys}, {p.values, other.values}} {
		for path, at := range m.from {
			path = shift(path, shifted)
			if old, there := m.into[path]; !there || at.before(old) < 0 {
				m.into[path] = at
			}
		}
	}
}

// shift renames role.kv.listen[0].name to role.kv.listen[2].name where two
// listeners stand before it.
func shift(path string, shifted map[string]int) string {
	for list, by := range shifted {
		rest, below := strings.CutPrefix(path, list+"[")
		number, rest, _ := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(number); below && err == nil {
			return indexPath(list, i+by) + rest
		}
	}
	return path
}
