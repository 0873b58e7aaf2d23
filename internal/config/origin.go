package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/standbyd/standbyd/supervisor"
)

// Where a value comes from. The words are append-only.
const (
	FromFile    = "file"
	FromDefault = "default"
	FromEnv     = "env" // a variable of standbyd's own environment
)

// Setting is one key of the effective config.
type Setting struct {
	Key   string `json:"key"` // full path, such as role.kv.listen[0].address
	Value any    `json:"value"`
	From  string `json:"from"`
	// File and Line are where the file that was named, a part of it, or an
	// env_file sets it; empty and 0 unless From is "file".
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Variable is set if From is "env".
	Variable string `json:"variable,omitempty"`

	apart bool // comes from an env_file: no key of the config itself
}

// source is how the printed config says where the value comes from.
func (s *Setting) source() string {
	switch s.From {
	case FromFile:
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	case FromEnv:
		return "env " + s.Variable
	}
	return s.From
}

// fileLine is a place in a file that is not TOML.
type fileLine struct {
	file string
	line int
}

// fromFile notes where an env_file sets a variable.
func (r *reader) fromFile(envFile, name, file string, line int) {
	if r.envLines == nil {
		r.envLines = map[string]fileLine{}
	}
	r.envLines[joinPath(strings.TrimSuffix(envFile, "_file"), name)] = fileLine{file, line}
}

// Settings is the effective config: every key with the value that is in force,
// as Print has it. Keys without a value are left out. Values of environment
// variables are "***".
func (c *Config) Settings() (all []Setting) {
	for _, s := range c.sections() {
		all = append(all, s.settings...)
	}
	return all
}

// printed is one table of the effective config.
type printed struct {
	header   string
	path     string // what the keys begin with
	settings []Setting
}

// sections are the tables of the effective config, in the order of the files.
func (c *Config) sections() []printed {
	out := []printed{{"[supervisor]", "supervisor", settingsOf(c, "supervisor", daemonKeys, &c.Daemon)}}
	add := func(header, path string, settings []Setting) {
		out = append(out, printed{header, path, settings})
	}
	for i := range c.Roles {
		role := &c.Roles[i]
		at := joinPath("role", role.Name)
		own := settingsOf(c, at, roleKeys, role)
		for _, name := range role.fromFile() {
			path := joinPath(joinPath(at, "env"), name)
			from := c.reader.envLines[path]
			own = append(own, Setting{Key: path, Value: hidden, From: FromFile, File: from.file, Line: from.line, apart: true})
		}
		add("["+at+"]", at, own)
		if role.Ready.IsSet() {
			add("["+at+".ready]", at+".ready", settingsOf(c, at+".ready", readyKeys, &role.Ready))
		}
		if role.Health.IsSet() {
			add("["+at+".health]", at+".health", settingsOf(c, at+".health", probeKeys, &role.Health))
		}
		for _, index := range slices.Sorted(maps.Keys(role.WorkerOptions)) {
			path := strings.TrimSuffix(c.reader.workers[indexPath(at, index)], ".index")
			add("[["+at+".worker]]", path, settingsOf(c, path, workerKeys, &Worker{Index: index, WorkerOptions: role.WorkerOptions[index]}))
		}
		for j, l := range role.Listen {
			path := indexPath(joinPath(at, "listen"), j)
			add("[["+at+".listen]]", path, settingsOf(c, path, listenKeys, &supervisor.ListenConfig{Name: l.Name, Network: l.Network, Address: l.Address}))
		}
		for j := range role.Plugins {
			path := indexPath(joinPath(at, "plugin"), j)
			add("[["+at+".plugin]]", path, settingsOf(c, path, pluginKeys, &role.Plugins[j]))
		}
	}
	return out
}

// settingsOf are the keys of one table that have a value; variables one by one.
func settingsOf[T any](c *Config, path string, keys []key[T], from *T) (list []Setting) {
	for _, k := range keys {
		v, full := k.show(from), joinPath(path, k.name)
		variables, isTable := v.(map[string]any)
		switch {
		case v == nil:
		case isTable && k.kind == kindVariables:
			for _, name := range slices.Sorted(maps.Keys(variables)) {
				one := joinPath(full, name)
				list = append(list, c.origin(Setting{Key: one, Value: variables[name]}))
			}
		default:
			list = append(list, c.origin(Setting{Key: full, Value: v}))
		}
	}
	return list
}

// origin completes a setting by where its value comes from.
func (c *Config) origin(s Setting) Setting {
	if at, ok := c.reader.at.keys[s.Key]; ok {
		s.From, s.File, s.Line = FromFile, c.reader.files[at.file], at.line
		return s
	}
	switch s.Key {
	case "supervisor.runtime_dir":
		_, s.Variable = defaultRuntimeDir()
	case "supervisor.state_dir":
		_, s.Variable = defaultStateDir()
	}
	s.From = FromDefault
	if s.Variable != "" {
		s.From = FromEnv
	}
	return s
}

// fromFile are the names of the variables that env_file gave.
func (r *Role) fromFile() (names []string) {
	for name := range r.Env {
		if _, ok := r.EnvTable[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
