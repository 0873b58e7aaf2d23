package config

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/standbyd/standbyd/supervisor"
)

// The kinds of keys that confine workers.

// hidden stands for a value that may be a secret.
const hidden = "***"

// confineKeys are keys of a role.
var confineKeys = []key[Role]{
	described(umask("umask", func(r *Role) **int { return &r.Confine.Umask },
		`permission bits that new files of the workers do not get, in octal: "027"`), "standbyd's own"),
	described(optional("nice", func(r *Role) **int { return &r.Confine.Nice }, -20, 19,
		"niceness of the workers; one below standbyd's own needs root"), "standbyd's own"),
	described(optional("oom_score_adj", func(r *Role) **int { return &r.Confine.OOMScoreAdj }, -1000, 1000,
		"how readily the kernel ends a worker when memory is short: 1000 first, -1000 never; one below standbyd's own needs root. Linux only"), "standbyd's own"),
	boolean("no_new_privs", func(r *Role) *bool { return &r.Confine.NoNewPrivs },
		"setuid programs and file capabilities grant the workers nothing. Linux only"),
	limit("limit_nofile", func(r *Role) **supervisor.Limit { return &r.Confine.NoFile }, false,
		`open files of a worker: a number, "unlimited", or "SOFT:HARD"; above standbyd's own hard limit needs root`),
	limit("limit_core", func(r *Role) **supervisor.Limit { return &r.Confine.Core }, true,
		"size of a worker's core dump; 0 is none"),
	limit("limit_as", func(r *Role) **supervisor.Limit { return &r.Confine.AS }, true,
		"address space of a worker; a Go program reserves a gigabyte and more, see `memory_max`"),
	limit("limit_nproc", func(r *Role) **supervisor.Limit { return &r.Confine.NProc }, false,
		"processes of the workers' user, not of a worker; see `pids_max`"),
	limit("limit_memlock", func(r *Role) **supervisor.Limit { return &r.Confine.MemLock }, true,
		"memory that a worker may lock"),
	noLimit(size("memory_max", func(r *Role) *int64 { return &r.Confine.MemoryMax }, 0, 1<<50,
		"memory of a worker with all that it starts, by its cgroup; 0 is no limit. An error where the machine's cgroup v2 has no memory controller")),
	noLimit(percent("cpu_max", func(r *Role) *int { return &r.Confine.CPUMax },
		`CPU time of a worker with all that it starts, by its cgroup: "150%" is one and a half CPUs; 0 is no limit. Needs the cpu controller`)),
	noLimit(integer("pids_max", func(r *Role) *int { return &r.Confine.PIDsMax }, 0, 1<<22,
		"processes and threads of a worker with all that it starts, by its cgroup; 0 is no limit. Needs the pids controller")),
}

// noLimit leaves a limit of 0 out of the effective config.
func noLimit[T any](k key[T]) key[T] {
	show := k.show
	k.show = func(t *T) any {
		switch v := show(t); v {
		case int64(0), "0B", "0%":
			return nil
		default:
			return v
		}
	}
	return k
}

// optional is an integer that may be left unset.
func optional[T any](name string, field func(*T) **int, lo, hi int, doc string) key[T] {
	var n int
	inner := integer(name, func(*T) *int { return &n }, lo, hi, doc)
	return key[T]{
		name: name, kind: inner.kind, doc: doc,
		show: func(t *T) any {
			if *field(t) == nil {
				return nil
			}
			return int64(**field(t))
		},
		read: func(r *reader, at node, into *T) {
			before := len(r.problems)
			if inner.read(r, at, into); len(r.problems) == before {
				value := n
				*field(into) = &value
			}
		},
	}
}

func umask[T any](name string, field func(*T) **int, doc string) key[T] {
	return key[T]{
		name: name, kind: within("octal string", `"000"`, `"777"`), doc: doc,
		show: func(t *T) any {
			if *field(t) == nil {
				return nil
			}
			return fmt.Sprintf("%03o", **field(t))
		},
		read: func(r *reader, n node, into *T) {
			text, ok := n.value.(string)
			if !ok {
				r.bad(n.path, "is %s; write octal digits in quotes, such as \"027\"", kindOf(n.value))
				return
			}
			v, err := strconv.ParseUint(text, 8, 16)
			if err != nil || v > 0o777 {
				r.bad(n.path, "%q is no umask; write octal digits from \"000\" to \"777\", such as \"027\"", text)
				return
			}
			value := int(v)
			*field(into) = &value
		},
	}
}

// limit is a resource limit: N, "N", "SOFT:HARD", with "unlimited" for either,
// and units if it counts bytes.
func limit[T any](name string, field func(*T) **supervisor.Limit, bytes bool, doc string) key[T] {
	kind, example := "limit", `1024, "1024:4096" or "unlimited"`
	if bytes {
		kind, example = "limit, a size", `"64MiB", "64MiB:1GiB" or "unlimited"`
	}
	number := func(text string) (uint64, bool) {
		if text == "unlimited" {
			return supervisor.Unlimited, true
		}
		if bytes {
			n, ok := parseSize(text)
			return uint64(n), ok
		}
		n, err := strconv.ParseUint(text, 10, 63)
		return n, err == nil
	}
	write := func(n uint64) string {
		switch {
		case n == supervisor.Unlimited:
			return "unlimited"
		case bytes:
			return formatSize(int64(n))
		}
		return strconv.FormatUint(n, 10)
	}
	return key[T]{
		name: name, kind: kind, def: "standbyd's own", doc: doc,
		show: func(t *T) any {
			l := *field(t)
			switch {
			case l == nil:
				return nil
			case l.Soft == l.Hard:
				return write(l.Soft)
			}
			return write(l.Soft) + ":" + write(l.Hard)
		},
		read: func(r *reader, n node, into *T) {
			var text string
			switch v := n.value.(type) {
			case int64:
				text = strconv.FormatInt(v, 10)
			case string:
				text = v
			default:
				r.bad(n.path, "is %s; write a limit, such as %s", kindOf(n.value), example)
				return
			}
			soft, hard, two := strings.Cut(text, ":")
			if !two {
				hard = soft
			}
			s, ok := number(strings.TrimSpace(soft))
			h, ok2 := number(strings.TrimSpace(hard))
			switch {
			case !ok || !ok2:
				r.bad(n.path, "%q is not a limit; write %s", text, example)
			case s > h:
				r.bad(n.path, "%q: the soft limit is above the hard one", text)
			default:
				*field(into) = &supervisor.Limit{Soft: s, Hard: h}
			}
		},
	}
}

// maxPercent is more than all CPUs of any machine.
const maxPercent = 1_000_000

// percent is a share of one CPU.
func percent[T any](name string, field func(*T) *int, doc string) key[T] {
	return key[T]{
		name: name, kind: within("percentage", "0%", strconv.Itoa(maxPercent)+"%"), doc: doc,
		show: func(t *T) any { return strconv.Itoa(*field(t)) + "%" },
		read: func(r *reader, n node, into *T) {
			if v, ok := n.value.(int64); ok && v == 0 {
				*field(into) = 0
				return
			}
			text, ok := n.value.(string)
			if !ok {
				r.bad(n.path, "is %s; write a percentage of one CPU in quotes, such as \"50%%\" or \"150%%\"", kindOf(n.value))
				return
			}
			v, err := strconv.ParseUint(strings.TrimSuffix(text, "%"), 10, 31)
			if err != nil || !strings.HasSuffix(text, "%") || v > maxPercent {
				r.bad(n.path, "%q is not a percentage of one CPU; write \"50%%\" or \"150%%\"", text)
				return
			}
			*field(into) = int(v)
		},
	}
}

// variables is a list of names of environment variables.
func variables[T any](name string, field func(*T) *[]string, doc string) key[T] {
	k := lines(name, field, doc)
	asList := k.read
	k.read = func(r *reader, n node, into *T) {
		before := len(r.problems)
		asList(r, n, into)
		if len(r.problems) > before {
			return
		}
		for i, v := range *field(into) {
			at := indexPath(n.path, i)
			switch plain := strings.TrimSuffix(v, "*"); {
			case strings.ContainsRune(v, '='):
				r.bad(at, "is an assignment; write the name alone here, and values into `env`")
			case v == "*":
				r.bad(at, "would pass on everything; write the names")
			case !envName.MatchString(plain):
				r.bad(at, "%q cannot be the name of an environment variable", v)
			case reservedEnv(v):
				r.bad(at, "standbyd sets %s itself", v)
			}
		}
	}
	return k
}

// applicable reports what this machine refuses.
func (r *reader) applicable(at string, c *Config, role *Role) {
	for _, l := range []struct {
		key string
		set bool
	}{{"memory_max", role.Confine.MemoryMax != 0}, {"cpu_max", role.Confine.CPUMax != 0}, {"pids_max", role.Confine.PIDsMax != 0}} {
		if l.set && c.Daemon.Cgroups == supervisor.CgroupsOff {
			r.bad(joinPath(at, l.key), "is set by the worker's cgroup, and supervisor.cgroups is \"off\"")
			return
		}
	}
	var refused *supervisor.ConfigError
	if err := role.RoleConfig.Applicable(); errors.As(err, &refused) {
		msg := refused.Msg
		if refused.Err != nil {
			msg += ": " + refused.Err.Error()
		}
		r.bad(joinPath(at, refused.Field), "%s", msg)
	}
	if role.Confine.Nice != nil && *role.Confine.Nice < 0 && os.Getuid() != 0 {
		r.warn(joinPath(at, "nice"), "workers can be given a niceness below standbyd's own only if standbyd runs as root")
	}
}
