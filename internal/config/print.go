package config

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standbyd/standbyd/supervisor"
)

// Print writes the effective config as TOML: every key with the value that is
// in force, paths absolute. Reading it back gives the same Config, except for
// the values of environment variables: they may be secrets, and are shown as
// "***", those of env_file by their names in a comment.
func (c *Config) Print(w io.Writer) error {
	p := &printer{w: w}
	p.line("[supervisor]")
	printSection(p, daemonKeys, &c.Daemon)
	for i := range c.Roles {
		role := &c.Roles[i]
		at := joinPath("role", role.Name)
		p.line("\n[%s]", at)
		printSection(p, roleKeys, role)
		if names := role.fromFile(); len(names) > 0 {
			p.line("# env_file sets: %s", strings.Join(names, ", "))
		}
		p.probe(at, "ready", readyKeys, &role.Ready)
		p.probe(at, "health", probeKeys, &role.Health)
		for _, index := range slices.Sorted(maps.Keys(role.WorkerOptions)) {
			p.line("\n[[%s.worker]]", at)
			printSection(p, workerKeys, &Worker{Index: index, WorkerOptions: role.WorkerOptions[index]})
		}
		for _, l := range role.Listen {
			p.line("\n[[%s.listen]]", at)
			printSection(p, listenKeys, &supervisor.ListenConfig{Name: l.Name, Network: l.Network, Address: l.Address})
		}
		for j := range role.Plugins {
			p.line("\n[[%s.plugin]]", at)
			printSection(p, pluginKeys, &role.Plugins[j])
		}
	}
	return p.err
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

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func printSection[T any](p *printer, keys []key[T], from *T) {
	for _, k := range keys {
		if v := k.show(from); v != nil {
			p.line("%s = %s", k.name, tomlValue(v))
		}
	}
}

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
