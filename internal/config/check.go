package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standbyd/standbyd/internal/sockpath"
	"github.com/standbyd/standbyd/supervisor"
)

// The longest paths that sockets get below a role's folder: its own, and that
// of a plugin.
const (
	roleSocket   = "notify.sock"
	pluginSocket = "p/10/plugin1234567890"
)

var workerSuffix = regexp.MustCompile(`-[0-9]+$`)

// badRoleName returns the reason why a role cannot have the name, or "".
func badRoleName(name string) string {
	switch {
	case name == "":
		return "a role needs a name: [role.NAME]"
	case len(name) > 64:
		return fmt.Sprintf("the name of a role has at most 64 bytes, this one has %d", len(name))
	case name[0] == '-':
		return "the name of a role does not begin with '-'"
	case !bareKey(name):
		return "the name of a role has letters, digits, '-' and '_' only"
	case workerSuffix.MatchString(name):
		return fmt.Sprintf("a role's name cannot end in %q: that is how its workers are named", workerSuffix.FindString(name))
	}
	return ""
}

// crossCheck looks at settings that must fit each other, and at what they
// mean on this machine.
func (r *reader) crossCheck(c *Config) {
	sockets := filepath.Join(c.Daemon.RuntimeDir, "standbyd.sock")
	if len(sockets) > sockpath.Max {
		r.bad("supervisor.runtime_dir", "the path of the control socket, %s, has %d bytes; a unix socket's has at most %d: choose a shorter runtime_dir",
			sockets, len(sockets), sockpath.Max)
	} else {
		for _, role := range c.Roles {
			longest := filepath.Join(c.Daemon.RuntimeDir, "roles", role.Name, roleSocket)
			if len(role.Plugins) > 0 {
				longest = filepath.Join(c.Daemon.RuntimeDir, "roles", role.Name, pluginSocket)
			}
			if len(longest) > sockpath.Max {
				r.bad("supervisor.runtime_dir", "sockets of role %s below %s have paths of up to %d bytes; a unix socket's has at most %d: choose a shorter runtime_dir or name of the role",
					role.Name, c.Daemon.RuntimeDir, len(longest), sockpath.Max)
			}
		}
	}
	r.folder("supervisor.runtime_dir", c.Daemon.RuntimeDir)
	r.folder("supervisor.state_dir", c.Daemon.StateDir)
	if sameFolder(c.Daemon.RuntimeDir, c.Daemon.StateDir) {
		r.bad("supervisor.state_dir", "is the same folder as runtime_dir; set it to another one: what is in runtime_dir may be lost at a reboot, and tokens never fall only as long as state_dir is not")
	}
	r.controlGroup(&c.Daemon)
	r.listeners(c)
	for i := range c.Roles {
		role := &c.Roles[i]
		at := joinPath("role", role.Name)
		before := len(r.problems)
		r.crossCheckRole(at, role)
		r.validate(at, role)
		if len(r.problems) == before {
			r.applicable(at, c, role)
		}
		r.program(joinPath(at, "command"), role.Command, role)
		for _, p := range []struct {
			name  string
			probe *supervisor.Probe
		}{{"ready", &role.Ready}, {"health", &role.Health}} {
			here := joinPath(at, p.name)
			r.program(joinPath(here, "exec"), p.probe.Exec, role)
			if r.set(here) && !p.probe.IsSet() {
				r.warn(here, "asks nothing, so that its other settings have no effect: set http, tcp or exec")
			}
		}
		r.plugins(at, role)
		r.hints(at, role)
	}
}

// controlGroup finds the number of the group.
func (r *reader) controlGroup(d *Daemon) {
	const at = "supervisor.control_group"
	if d.ControlGroup == "" {
		if d.ControlAccess != "read" {
			r.bad("supervisor.control_access", "needs control_group: it says what members of that group may do")
		}
		return
	}
	gid, err := strconv.Atoi(d.ControlGroup)
	if err != nil {
		g, lerr := user.LookupGroup(d.ControlGroup)
		if lerr != nil {
			r.bad(at, "there is no group %q on this machine", d.ControlGroup)
			return
		}
		gid, err = strconv.Atoi(g.Gid)
	}
	if err != nil {
		r.bad(at, "the number of group %q cannot be told: %v", d.ControlGroup, err)
		return
	}
	d.ControlGID = gid
}

func (r *reader) crossCheckRole(at string, role *Role) {
	key := func(name string) string { return joinPath(at, name) }
	// report stands at the first of the keys that is in the file.
	report := func(keys []string, format string, args ...any) {
		for _, k := range keys {
			if r.set(key(k)) {
				r.bad(key(k), format, args...)
				return
			}
		}
		r.bad(key(keys[0]), format, args...)
	}
	if role.RestartDelay > role.RestartMaxDelay {
		report([]string{"restart_delay", "restart_max_delay"}, "restart_delay (%s) is above restart_max_delay (%s)", short(role.RestartDelay), short(role.RestartMaxDelay))
	}
	if role.StopTimeout < role.DrainTimeout {
		report([]string{"stop_timeout", "drain_timeout"}, "stop_timeout (%s) is below drain_timeout (%s): a leader would be killed while it drains", short(role.StopTimeout), short(role.DrainTimeout))
	}
	if role.ProgressTimeout > 0 && role.ProgressTimeout < 2*role.Tick {
		report([]string{"progress_timeout", "tick"}, "progress_timeout (%s) is below two ticks (tick = %s): it is looked at once per tick", short(role.ProgressTimeout), short(role.Tick))
	}
	hang := role.Tick * time.Duration(role.Grace+1)
	if role.FenceTimeout < hang {
		report([]string{"fence_timeout", "grace", "tick"}, "fence_timeout (%s) is below the time in which a hang is noticed, tick (%s) x (grace (%d) + 1) = %s", short(role.FenceTimeout), short(role.Tick), role.Grace, short(hang))
	} else if hang > time.Hour {
		report([]string{"grace", "tick"}, "grace (%d) and tick (%s) together mean that a hang is found after %s; at most 1h is allowed", role.Grace, short(role.Tick), short(hang))
	} else if hang < 300*time.Millisecond {
		r.warn(key("grace"), "grace (%d) and tick (%s) together call a leader hung after about %s; a busy Go worker beats up to 250ms late", role.Grace, short(role.Tick), short(hang))
	}
	if role.Group != "" && role.User == "" && os.Getuid() != 0 {
		r.warn(key("group"), "workers can be given another group only if standbyd runs as root")
	}
	r.accounts(at, role)

	able := role.Workers
	for _, index := range slices.Sorted(maps.Keys(role.WorkerOptions)) {
		if index >= role.Workers {
			r.bad(r.workers[indexPath(at, index)], "there is no worker %d: workers = %d, so indexes go from 0 to %d", index, role.Workers, role.Workers-1)
			continue
		}
		if role.WorkerOptions[index].NoFailover {
			able--
		}
	}
	switch {
	case able <= 0:
		r.warn(at, "nofailover is set for every worker: nobody will ever lead")
	case able == 1:
		r.warn(at, "only one worker may lead: there is no standby; set workers = 2 or more")
	}
	if role.Tick < 5*time.Millisecond && role.Scheduling != supervisor.SchedulingFIFO {
		r.warn(key("tick"), "%v: on a busy machine a healthy leader can be taken for a hung one with ticks of less than 5ms; scheduling = \"fifo\" makes that unlikely", role.Tick)
	}
	if role.Preempt == supervisor.PreemptPriority && !slices.ContainsFunc(slices.Collect(maps.Values(role.WorkerOptions)), func(o supervisor.WorkerOptions) bool { return o.Priority != 0 }) {
		r.warn(key("preempt"), `preempt = "priority" has no effect: no [[%s.worker]] has a priority`, at)
	}
	if info, err := os.Stat(role.Dir); err != nil || !info.IsDir() {
		r.warn(key("dir"), "%s is not a folder (yet): the workers cannot be started", role.Dir)
	}
}

// validate asks the supervisor itself, so that nothing passes here that
// supervisor.New refuses.
func (r *reader) validate(at string, role *Role) {
	known := func(key string) bool {
		return slices.ContainsFunc(r.problems, func(p Problem) bool {
			return p.Key == key || strings.HasPrefix(p.Key, key+".") || strings.HasPrefix(p.Key, key+"[")
		})
	}
	// These two are compared with each other.
	ends := known(joinPath(at, "restart_on")) || known(joinPath(at, "no_restart_on"))
	broken := known(at)
	for _, refused := range refusals(role.RoleConfig) {
		table := tableOf(refused)
		// What was refused before has its default now: only the keys that
		// are looked at here alone say anything.
		if broken && (!slices.Contains(checkedApart, table) || ends && strings.HasSuffix(table, "restart_on") ||
			!strings.HasSuffix(table, "restart_on") && known(joinPath(at, table))) {
			continue
		}
		msg := refused.Msg
		if refused.Err != nil {
			msg += ": " + refused.Err.Error()
		}
		r.bad(at+"."+refused.Field, "%s", msg)
	}
}

// checkedApart are the keys of a role that neither contradict others nor
// follow from them.
var checkedApart = []string{"ready", "health", "restart_on", "no_restart_on"}

// tableOf is the key of a role in which a refused one stands.
func tableOf(refused *supervisor.ConfigError) string {
	table, _, _ := strings.Cut(refused.Field, ".")
	table, _, _ = strings.Cut(table, "[")
	return table
}

// refusals are all that the supervisor has against a role: it names one, so it
// is asked again without that.
func refusals(c supervisor.RoleConfig) (all []*supervisor.ConfigError) {
	ask := func(c supervisor.RoleConfig) (refused *supervisor.ConfigError) {
		errors.As(c.Validate(), &refused)
		return refused
	}
	for {
		refused := ask(c)
		if refused == nil {
			return all
		}
		table := tableOf(refused)
		list := map[string]*[]string{"restart_on": &c.RestartOn, "no_restart_on": &c.NoRestartOn}[table]
		switch {
		case table == "ready" || table == "health":
			probe, unset := &c.Ready, supervisor.DefaultRole().Ready
			if table == "health" {
				probe, unset = &c.Health, supervisor.DefaultRole().Health
			}
			// Where there are several ways, each has its own faults beside that.
			for _, way := range waysOf(*probe) {
				*probe = way
				if one := ask(c); one != nil && tableOf(one) == table {
					all = append(all, one)
				}
			}
			*probe = unset
		case list != nil && len(*list) > 0:
			ends, found := *list, false
			for i := range ends {
				*list = ends[i : i+1]
				if one := ask(c); one != nil && strings.HasPrefix(one.Field, table) {
					one.Field, found = indexPath(table, i), true
					all = append(all, one)
				}
			}
			if *list = nil; found {
				continue
			}
		default:
			return append(all, refused)
		}
		all = append(all, refused)
	}
}

// waysOf are the ways of a probe that has more than one, each alone.
func waysOf(p supervisor.Probe) (ways []supervisor.Probe) {
	none := p
	none.FD, none.HTTP, none.TCP, none.Exec = 0, "", "", nil
	for _, take := range []func(*supervisor.Probe){
		func(to *supervisor.Probe) { to.FD = p.FD }, func(to *supervisor.Probe) { to.HTTP = p.HTTP },
		func(to *supervisor.Probe) { to.TCP = p.TCP }, func(to *supervisor.Probe) { to.Exec = p.Exec },
	} {
		way := none
		if take(&way); way.IsSet() {
			ways = append(ways, way)
		}
	}
	if len(ways) < 2 {
		return nil
	}
	return ways
}

func (r *reader) accounts(at string, role *Role) {
	if role.User != "" {
		if _, err := strconv.ParseUint(role.User, 10, 32); err != nil {
			if _, err := user.Lookup(role.User); err != nil {
				r.bad(joinPath(at, "user"), "there is no user %q on this machine", role.User)
			}
		}
		if os.Getuid() != 0 && len(r.problems) == 0 && !isSelf(role.User) {
			r.warn(joinPath(at, "user"), "workers can be run as %s only if standbyd runs as root", role.User)
		}
	}
	if role.Group != "" {
		if _, err := strconv.ParseUint(role.Group, 10, 32); err != nil {
			if _, err := user.LookupGroup(role.Group); err != nil {
				r.bad(joinPath(at, "group"), "there is no group %q on this machine", role.Group)
			}
		}
	}
}

func isSelf(name string) bool {
	if name == strconv.Itoa(os.Getuid()) {
		return true
	}
	u, err := user.Lookup(name)
	return err == nil && u.Uid == strconv.Itoa(os.Getuid())
}

// program warns about a command that cannot be started now.
func (r *reader) program(at string, argv []string, role *Role) {
	if len(argv) == 0 {
		return
	}
	at = indexPath(at, 0)
	if !strings.ContainsRune(argv[0], filepath.Separator) {
		if role.Env["PATH"] == "" {
			if _, err := exec.LookPath(argv[0]); err != nil {
				r.warn(at, "there is no program %q in PATH; write a path with a slash if it is a file: \"./%s\"", argv[0], argv[0])
			}
		}
		return
	}
	info, err := os.Stat(argv[0])
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.warn(at, "%s does not exist (yet)", argv[0])
	case err != nil:
		r.warn(at, "cannot look at %s: %v", argv[0], errors.Unwrap(err))
	case info.IsDir():
		r.warn(at, "%s is a folder, not a program", argv[0])
	case info.Mode()&0o111 == 0:
		r.warn(at, "%s is not executable; chmod +x it", argv[0])
	}
}

func (r *reader) plugins(at string, role *Role) {
	list := joinPath(at, "plugin")
	first := map[string]int{}
	for i, p := range role.Plugins {
		here := indexPath(list, i)
		if j, twice := first[p.Name]; twice && p.Name != "" {
			r.bad(joinPath(here, "name"), "%q is already the name of the plugin in %s", p.Name, r.lineOf(joinPath(indexPath(list, j), "name"), r.placeOf(here).file))
		} else {
			first[p.Name] = i
		}
		r.program(joinPath(here, "command"), p.Command, role)
	}
}

// placeholder is {NAME} of a hint; ${NAME} is the shell's.
var placeholder = regexp.MustCompile(`(^|[^$])\{([A-Za-z][A-Za-z0-9_-]*)\}`)

func (r *reader) hints(at string, role *Role) {
	var names []string
	for _, l := range role.Listen {
		names = append(names, l.Name)
	}
	for i, hint := range role.Hints {
		for _, m := range placeholder.FindAllStringSubmatch(hint, -1) {
			if slices.Contains(names, m[2]) {
				continue
			}
			there := "there are " + strings.Join(names, ", ")
			if len(names) == 0 {
				there = "it has none"
			}
			r.badNear(indexPath(joinPath(at, "hints"), i), nearest(m[2], names), "{%s} is no listener of the role; %s", m[2], there)
		}
	}
}

// address completes a listener's network and checks the address.
func (r *reader) address(at string, l *Listen) {
	at = joinPath(at, "address")
	if l.Network == "" {
		l.Network = "tcp"
		if strings.ContainsRune(l.Address, '/') {
			l.Network = "unix"
		}
	}
	if l.Network == "unix" {
		if l.Address == "" {
			r.bad(at, "is empty; write a path")
			return
		}
		l.Address = r.resolve(l.Address)
		if len(l.Address) > sockpath.Max {
			r.bad(at, "%s has %d bytes; the path of a unix socket has at most %d", l.Address, len(l.Address), sockpath.Max)
		}
		return
	}
	host, port, err := net.SplitHostPort(l.Address)
	if err != nil {
		if _, number := strconv.ParseUint(l.Address, 10, 16); number == nil {
			r.bad(at, "%q is only a port; write \"127.0.0.1:%s\", or \":%s\" for all addresses of the machine", l.Address, l.Address, l.Address)
			return
		}
		r.bad(at, "%q is not host:port (such as \"127.0.0.1:8080\") and has no slash, so that it is no unix socket either", l.Address)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		r.bad(at, "the port %q is not a number from 0 to 65535", port)
		return
	}
	if strings.ContainsAny(host, " \t\"'") {
		r.bad(at, "%q is not the name or address of a host", host)
	}
}

// listeners finds names and addresses that are taken twice.
func (r *reader) listeners(c *Config) {
	type bound struct {
		path string
		Listen
	}
	var all []bound
	for _, role := range c.Roles {
		list := joinPath(joinPath("role", role.Name), "listen")
		names := map[string]string{}
		for i, l := range role.Listen {
			at := indexPath(list, i)
			if other, twice := names[l.Name]; twice && l.Name != "" {
				r.bad(joinPath(at, "name"), "%q is already the name of the listener in %s", l.Name, r.lineOf(other, r.placeOf(at).file))
			} else {
				names[l.Name] = joinPath(at, "name")
			}
			for _, b := range all {
				if clash(b.Listen, l) {
					r.bad(joinPath(at, "address"), "%q is taken by %s (%q, %s)", l.Address, joinPath(b.path, "address"), b.Address, r.lineOf(joinPath(b.path, "address"), r.placeOf(at).file))
					break
				}
			}
			all = append(all, bound{at, l})
		}
	}
}

// clash tells whether two listeners cannot both be bound.
func clash(a, b Listen) bool {
	if a.Network != b.Network || a.Address == "" {
		return false
	}
	if a.Network == "unix" {
		return a.Address == b.Address
	}
	aHost, aPort, aErr := net.SplitHostPort(a.Address)
	bHost, bPort, bErr := net.SplitHostPort(b.Address)
	if aErr != nil || bErr != nil || aPort != bPort || strings.Trim(aPort, "0") == "" {
		return false
	}
	return aHost == bHost || wildcard(aHost) || wildcard(bHost)
}

func wildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
