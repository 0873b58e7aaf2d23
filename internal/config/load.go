package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/standbyd/standbyd/supervisor"
)

// maxFile is the size beyond which a file is refused unread: it is no config.
const maxFile = 4 << 20

// Load reads and checks a config file and its parts, config.d/*.toml beside it.
// If one is wrong the error is a [Problems] with everything found; if the file
// cannot be read, an error of os.
func Load(file string) (*Config, error) {
	raw, err := readFile(file)
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("resolve config file %s: %w", file, err)
	}
	r := &reader{files: []string{file}, dir: filepath.Dir(absolute)}
	main, ok := r.parse(0, raw)
	parts, good := r.parts()
	r.partial = !ok || !good
	if !ok {
		main = part{map[string]any{}, locate(0, "")}
	}
	r.merge(main, parts)
	c := &Config{File: absolute, Files: r.files, Daemon: DefaultDaemon()}
	r.document(main.document, c)
	if r.partial { // what is missing, or does not fit, may be in what cannot be read
		return nil, r.sorted(r.problems)
	}
	r.crossCheck(c)
	if len(r.problems) > 0 {
		return nil, r.sorted(r.problems)
	}
	c.Warnings = r.sorted(r.warnings)
	c.reader = r
	return c, nil
}

// FoldersOf returns the runtime and the state folder that a config file names,
// or the default ones. It looks at nothing else, and at none of its parts, so that the daemon of a file
// that was broken after its start can still be found.
func FoldersOf(file string) (runtimeDir, stateDir string, err error) {
	raw, err := readFile(file)
	if err != nil {
		return "", "", err
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return "", "", fmt.Errorf("resolve config file %s: %w", file, err)
	}
	r := &reader{files: []string{file}, dir: filepath.Dir(absolute)}
	main, ok := r.parse(0, raw)
	if !ok {
		return "", "", Problems(r.problems)
	}
	daemon := DefaultDaemon()
	r.at = main.at
	r.folderKeys(main.document, &daemon)
	if len(r.problems) > 0 {
		return "", "", Problems(r.problems)
	}
	return daemon.RuntimeDir, daemon.StateDir, nil
}

// folderKeys reads the two folders, and keeps of all problems those that may
// be about them: a key that was meant to name one is not passed over.
func (r *reader) folderKeys(document map[string]any, daemon *Daemon) {
	folders := []string{"runtime_dir", "state_dir"}
	for _, name := range r.ordered("", document) {
		if near := nearest(name, folders); near != "" {
			r.badKey(joinPath("", name), "supervisor."+near, "unknown table; there are [supervisor] and [role.NAME]")
		}
	}
	value, ok := document["supervisor"]
	if !ok {
		return
	}
	table, ok := r.table(node{"supervisor", value}, "[supervisor]")
	if !ok {
		return
	}
	before := len(r.problems)
	section(r, "supervisor", table, daemonKeys, nil, daemon)
	found := r.problems[before:]
	r.problems = append(r.problems[:before:before], slices.DeleteFunc(slices.Clone(found), func(p Problem) bool {
		return !slices.Contains(folders, p.Nearest) && !slices.Contains(folders, strings.TrimPrefix(p.Key, "supervisor."))
	})...)
}

var (
	tableLine   = regexp.MustCompile(`^\s*\[`)
	daemonTable = regexp.MustCompile(`^\s*\[\s*supervisor\s*\]\s*(#.*)?$`)
	runtimeLine = regexp.MustCompile(`^\s*(supervisor\s*\.\s*)?runtime_dir\s*=\s*("[^"\\]*"|'[^']*')\s*(#.*)?$`)
)

// RuntimeDirOfBroken returns the runtime folder of a file that is no valid
// TOML, read line by line; the default one if no line is about it. told is
// false if some line is and cannot be read without doubt.
func RuntimeDirOfBroken(file string) (dir string, told bool) {
	raw, err := readFile(file)
	if err != nil {
		return "", false
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return "", false
	}
	r := &reader{files: []string{file}, dir: filepath.Dir(absolute)}
	if bytes.Contains(raw, []byte(`"""`)) || bytes.Contains(raw, []byte("'''")) {
		return "", false // a line may be part of a string
	}
	inTop, inDaemon, found := true, false, ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\r\n")
		if tableLine.MatchString(line) {
			inTop, inDaemon = false, daemonTable.MatchString(line)
		}
		if !strings.Contains(line, "runtime_dir") || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		m := runtimeLine.FindStringSubmatch(line)
		if m == nil || found != "" || m[1] == "" && !inDaemon || m[1] != "" && !inTop {
			return "", false
		}
		if found = m[2][1 : len(m[2])-1]; found == "" {
			return "", false
		}
	}
	if found == "" {
		return DefaultRuntimeDir(), true
	}
	return r.resolve(found), true
}

func readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("read config file %s: it is a folder; name the file in it", file)
	}
	if err == nil && info.Size() > maxFile {
		return nil, fmt.Errorf("read config file %s: %d bytes is too large for a config file", file, info.Size())
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read config file %s: it is no regular file (%v)", file, info.Mode().Type())
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, fmt.Errorf("read config file %s: %w", file, err)
	}
	return raw, nil
}

// parse decodes the text of one of the files and finds the places of its keys.
func (r *reader) parse(file int, raw []byte) (part, bool) {
	document := map[string]any{}
	if _, err := toml.Decode(string(raw), &document); err != nil {
		p := r.syntax(file, string(raw), err)
		r.problems = append(r.problems, p)
		return part{}, false
	}
	return part{document, locate(file, string(raw))}, true
}

func (r *reader) document(document map[string]any, c *Config) {
	for _, name := range r.ordered("", document) {
		n := node{joinPath("", name), document[name]}
		switch name {
		case "supervisor":
			if table, ok := r.table(n, "[supervisor]"); ok {
				section(r, n.path, table, daemonKeys, nil, &c.Daemon)
			}
		case "role":
			table, ok := r.table(n, "[role.NAME]")
			if !ok {
				continue
			}
			for _, roleName := range r.ordered(n.path, table) {
				if role, ok := r.role(roleName, node{joinPath(n.path, roleName), table[roleName]}); ok {
					c.Roles = append(c.Roles, role)
				}
			}
		default:
			near := nearest(name, []string{"supervisor", "role"})
			r.badKey(n.path, near, "unknown table; there are [supervisor] and [role.NAME]")
		}
	}
	if len(c.Roles) == 0 && len(r.problems) == 0 {
		r.problems = append(r.problems, Problem{File: r.files[0], Line: 1, Col: 1, Key: "role",
			Msg: "there is no role; add a table [role.NAME] with a command, here or in " + PartsFolder + "/*.toml"})
	}
}

func (r *reader) role(name string, n node) (Role, bool) {
	role := DefaultRole()
	role.Name, role.Dir = name, r.dir
	if !nameIsTable(n.value) {
		if _, list := n.value.([]map[string]any); !list {
			if slices.Contains(keyNames(roleKeys), name) {
				r.badKey(n.path, "", "is a setting of one role; put it below a table [role.NAME]")
			} else {
				r.badKey(n.path, "", "is %s; a role is a table: [role.NAME]", kindOf(n.value))
			}
			return role, false
		}
	}
	table, ok := r.table(n, "["+n.path+"]")
	if !ok {
		return role, false
	}
	if reason := badRoleName(name); reason != "" {
		r.badKey(n.path, "", "%s", reason)
	}
	section(r, n.path, table, roleKeys, []string{"ready", "health", "worker", "listen", "plugin"}, &role)
	r.required(n, table, "command", `command = ["./bin/worker"]`)
	r.probe(n, table, "ready", readyKeys, &role.Ready)
	r.probe(n, table, "health", probeKeys, &role.Health)
	for _, w := range r.nested(n, table, "worker") {
		r.worker(w, &role)
	}
	for _, l := range r.nested(n, table, "listen") {
		r.listen(l, &role)
	}
	for _, p := range r.nested(n, table, "plugin") {
		r.plugin(p, &role)
	}
	r.environmentOf(n.path, &role)
	return role, true
}

// required reports a key that must be there, unless a misspelt one is reported.
func (r *reader) required(n node, table map[string]any, name, example string) bool {
	if _, ok := table[name]; ok {
		return true
	}
	if r.partial {
		return false
	}
	for _, p := range r.problems {
		if p.Nearest == name && strings.HasPrefix(p.Key, n.path+".") {
			return false
		}
	}
	r.badKey(n.path, "", "has no %s; add %s", name, example)
	return false
}

func nameIsTable(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func keyNames[T any](keys []key[T]) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

func (r *reader) nested(role node, table map[string]any, name string) []node {
	value, ok := table[name]
	if !ok {
		return nil
	}
	path := joinPath(role.path, name)
	return r.tables(node{path, value}, "[["+path+"]]")
}

func (r *reader) worker(n node, role *Role) {
	var w Worker
	table := n.value.(map[string]any)
	section(r, n.path, table, workerKeys, nil, &w)
	if !r.required(n, table, "index", "index = 0") {
		return
	}
	if _, twice := role.WorkerOptions[w.Index]; twice {
		r.bad(joinPath(n.path, "index"), "worker %d is described twice; put its settings into one table", w.Index)
		return
	}
	if role.WorkerOptions == nil {
		role.WorkerOptions = map[int]supervisor.WorkerOptions{}
	}
	role.WorkerOptions[w.Index] = w.WorkerOptions
	if r.workers == nil {
		r.workers = map[string]string{}
	}
	r.workers[indexPath(joinPath("role", role.Name), w.Index)] = joinPath(n.path, "index")
}

func (r *reader) listen(n node, role *Role) {
	var l Listen
	table := n.value.(map[string]any)
	before := len(r.problems)
	section(r, n.path, table, listenKeys, nil, &l)
	r.required(n, table, "name", `name = "http"`)
	r.required(n, table, "address", `address = "127.0.0.1:8080"`)
	if len(r.problems) > before {
		// keep the list as long as the file's, so that indexes in later messages are right
		role.Listen = append(role.Listen, Listen{})
		return
	}
	r.address(n.path, &l)
	role.Listen = append(role.Listen, l)
}

func (r *reader) plugin(n node, role *Role) {
	var p Plugin
	table := n.value.(map[string]any)
	section(r, n.path, table, pluginKeys, nil, &p)
	r.required(n, table, "name", `name = "snapshot"`)
	r.required(n, table, "command", `command = ["./bin/standbyd-snapshot"]`)
	role.Plugins = append(role.Plugins, p)
}

// environmentOf merges env_file and env.
func (r *reader) environmentOf(path string, role *Role) {
	role.Env = map[string]string{}
	if role.EnvFile != "" {
		r.envFile(joinPath(path, "env_file"), role.EnvFile, role.Env)
	}
	for k, v := range role.EnvTable {
		role.Env[k] = v
	}
	if len(role.Env) == 0 {
		role.Env = nil
	}
}

// envFile reads lines NAME=value. Empty lines and lines that begin with # are
// skipped; quotes around the whole value are taken off.
func (r *reader) envFile(path, file string, into map[string]string) {
	if info, err := os.Stat(file); err == nil && (!info.Mode().IsRegular() && file != os.DevNull || info.Size() > maxFile) {
		r.bad(path, "%s is not a regular file of at most %s", file, formatSize(maxFile))
		return
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		r.bad(path, "cannot read %s: %v", file, err)
		return
	}
	for i, line := range strings.Split(string(raw), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		line = strings.TrimPrefix(line, "export ")
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		reason := ""
		switch {
		case !ok:
			reason = "is not NAME=value"
		case !envName.MatchString(name):
			reason = fmt.Sprintf("%q cannot be the name of an environment variable", name)
		case reservedEnv(name):
			reason = fmt.Sprintf("standbyd sets %s itself; choose another name", name)
		case strings.ContainsRune(value, 0):
			reason = "contains a zero byte"
		default:
			into[name] = value
			r.fromFile(path, name, file, i+1)
			continue
		}
		r.problems = append(r.problems, Problem{File: file, Line: i + 1, Col: 1, Key: path, Msg: reason})
	}
}

// sorted orders problems as they stand in the files; those of other files, such
// as an env_file, come last.
func (r *reader) sorted(list []Problem) Problems {
	rank := func(p Problem) place {
		file := slices.Index(r.files, p.File)
		if file < 0 {
			return place{file: len(r.files)}
		}
		return place{file, p.Line, p.Col}
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return rank(a).before(rank(b)) })
	return list
}
