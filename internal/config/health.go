package config

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/supervisor"
)

// The keys that say when a worker is ready, in health, and started again.

// healthKeys are keys of a role.
var healthKeys = []key[Role]{
	ends("restart_on", func(r *Role) *[]string { return &r.RestartOn },
		"exit statuses and signals after which a worker is started again, whatever `restart` says"),
	ends("no_restart_on", func(r *Role) *[]string { return &r.NoRestartOn },
		"exit statuses and signals after which it is not, until `standbyd start`"),
	duration("watchdog", func(r *Role) *time.Duration { return &r.Watchdog }, 0, day,
		"a worker that is ready and sends no WATCHDOG=1 for this long is killed; it finds the time in WATCHDOG_USEC; 0s is off"),
}

// readyKeys are those of [role.NAME.ready], probeKeys of [role.NAME.health] too.
var readyKeys = append([]key[supervisor.Probe]{
	noLimit(integer("fd", func(p *supervisor.Probe) *int { return &p.FD }, 4, 255,
		"the worker writes a newline to this descriptor when it is ready; it must be beyond those of the listeners and the segment")),
}, probeKeys...)

var probeKeys = []key[supervisor.Probe]{
	text("http", func(p *supervisor.Probe) *string { return &p.HTTP }, nil,
		"URL that is answered with a status from 200 to 399. Here, in `tcp` and in `exec`, `{index}` is the worker's number, `{8080+index}` the sum of both, `{worker}` its name, `{pid}` its process"),
	text("tcp", func(p *supervisor.Probe) *string { return &p.TCP }, nil,
		"`host:port`, or the absolute path of a Unix socket, that accepts a connection"),
	described(unset(command("exec", func(p *supervisor.Probe) *[]string { return &p.Exec },
		"program with arguments that ends with status 0; it runs as the worker's user, in its folder, with its environment")), "none"),
	duration("interval", func(p *supervisor.Probe) *time.Duration { return &p.Interval }, time.Millisecond, day,
		"from the end of one try to the next"),
	duration("timeout", func(p *supervisor.Probe) *time.Duration { return &p.Timeout }, time.Millisecond, time.Hour,
		"limit of one try"),
	integer("threshold", func(p *supervisor.Probe) *int { return &p.Threshold }, 1, 1000,
		"for `ready`: successes in a row until the worker is; for `health`: failures in a row until it is restarted, or its leadership moved"),
}

// unset leaves an empty list out of the effective config.
func unset[T any](k key[T]) key[T] {
	show := k.show
	k.show = func(t *T) any {
		if v, ok := show(t).([]string); ok && len(v) == 0 {
			return nil
		}
		return show(t)
	}
	return k
}

// probe reads the table of a role's probe.
func (r *reader) probe(role node, table map[string]any, name string, keys []key[supervisor.Probe], into *supervisor.Probe) {
	value, ok := table[name]
	if !ok {
		return
	}
	path := joinPath(role.path, name)
	if t, ok := r.table(node{path, value}, "["+path+"]"); ok {
		section(r, path, t, keys, nil, into)
	}
}

// ends is a list of exit statuses and names of signals.
func ends[T any](name string, field func(*T) *[]string, doc string) key[T] {
	return key[T]{
		name: name, kind: "list of integers and signals", doc: doc,
		show: func(t *T) any {
			list := []any{}
			for _, end := range *field(t) {
				if n, err := strconv.Atoi(end); err == nil {
					list = append(list, int64(n))
				} else {
					list = append(list, end)
				}
			}
			return list
		},
		read: func(r *reader, n node, into *T) {
			const example = `[3, "HUP"]`
			list, ok := n.value.([]any)
			if !ok {
				r.bad(n.path, "is %s; write a list of exit statuses and signals: %s", kindOf(n.value), example)
				return
			}
			var out []string
			for i, v := range list {
				switch v := v.(type) {
				case int64:
					out = append(out, strconv.FormatInt(v, 10))
				case string:
					name := strings.TrimPrefix(strings.ToUpper(v), "SIG")
					if unix.SignalNum("SIG"+name) == 0 {
						name = v // is refused as it stands in the file
					}
					out = append(out, name)
				default:
					r.bad(indexPath(n.path, i), "is %s; an exit status is an integer, a signal a string: %s", kindOf(v), example)
				}
			}
			*field(into) = out
		},
	}
}
