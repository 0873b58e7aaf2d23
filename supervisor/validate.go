package supervisor

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/standbyd/standbyd/internal/listen"
	"github.com/standbyd/standbyd/internal/sockpath"
)

const (
	maxWorkers  = 60
	maxPayload  = 4096
	maxRoleName = 64
)

var (
	roleName     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
	endsInDigits = regexp.MustCompile(`-[0-9]+$`)
	listenName   = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

// Validate checks everything that can be known without touching the system.
// The error is a *ConfigError.
func (c *Config) Validate() error {
	if !filepath.IsAbs(c.RuntimeDir) {
		return &ConfigError{Field: "runtime_dir", Msg: fmt.Sprintf("%q is not an absolute path", c.RuntimeDir)}
	}
	if !filepath.IsAbs(c.StateDir) {
		return &ConfigError{Field: "state_dir", Msg: fmt.Sprintf("%q is not an absolute path", c.StateDir)}
	}
	if filepath.Clean(c.RuntimeDir) == filepath.Clean(c.StateDir) {
		return &ConfigError{Field: "state_dir", Msg: oneFolder}
	}
	if len(c.Roles) == 0 {
		return &ConfigError{Field: "role", Msg: "there is no role to run"}
	}
	if c.Cgroups != "" && c.Cgroups != CgroupsAuto && c.Cgroups != CgroupsOff {
		return &ConfigError{Field: "cgroups", Msg: fmt.Sprintf("%q, must be one of %s, %s", c.Cgroups, CgroupsAuto, CgroupsOff)}
	}
	seen := map[string]bool{}
	for i := range c.Roles {
		r := &c.Roles[i]
		if err := r.Validate(); err != nil {
			return err
		}
		if field := r.Confine.groupLimit(); field != "" && c.Cgroups == CgroupsOff {
			return &ConfigError{Role: r.Name, Field: field, Msg: "is set by the worker's cgroup, and cgroups are off"}
		}
		if seen[r.Name] {
			return &ConfigError{Role: r.Name, Field: "name", Msg: "there are two roles of this name"}
		}
		seen[r.Name] = true
		if path := filepath.Join(rolesDir(c.RuntimeDir), r.Name, socketName); len(path) > sockpath.Max {
			return &ConfigError{Role: r.Name, Field: "runtime_dir",
				Msg: fmt.Sprintf("the path of the role's socket has %d bytes, the system takes %d: choose a shorter runtime_dir (%s)", len(path), sockpath.Max, path)}
		}
	}
	return nil
}

// Validate checks one role's settings and how they relate. The error is a
// *ConfigError.
func (r *RoleConfig) Validate() error {
	bad := func(field, format string, args ...any) error {
		return &ConfigError{Role: r.Name, Field: field, Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case r.Name == "":
		return bad("name", "a role needs a name")
	case len(r.Name) > maxRoleName:
		return bad("name", "%d bytes, at most %d are allowed", len(r.Name), maxRoleName)
	case !roleName.MatchString(r.Name):
		return bad("name", "%q: only letters, digits, '-' and '_' are allowed, and no '-' first", r.Name)
	case endsInDigits.MatchString(r.Name):
		return bad("name", "%q ends like a worker's name (-DIGITS)", r.Name)
	case len(r.Command) == 0 || r.Command[0] == "":
		return bad("command", "there is no program to run")
	case strings.Contains(r.Command[0], "/") && !filepath.IsAbs(r.Command[0]):
		return bad("command", "%q is not an absolute path", r.Command[0])
	case r.Dir != "" && !filepath.IsAbs(r.Dir):
		return bad("dir", "%q is not an absolute path", r.Dir)
	case r.Workers < 1 || r.Workers > maxWorkers:
		return bad("workers", "%d, must be 1 to %d", r.Workers, maxWorkers)
	case r.Tick < time.Millisecond || r.Tick > time.Minute:
		return bad("tick", "%v, must be 1ms to 1m", r.Tick)
	case r.Grace < 1 || r.Grace > 1<<20:
		return bad("grace", "%d, must be 1 to %d", r.Grace, 1<<20)
	case r.Payload < 0 || r.Payload > maxPayload:
		return bad("payload", "%d, must be 0 to %d bytes", r.Payload, maxPayload)
	}
	for _, w := range []struct {
		field, value string
		allowed      []string
	}{
		{"preempt", string(r.Preempt), []string{string(PreemptSticky), string(PreemptLowestPID), string(PreemptPriority)}},
		{"proof", string(r.Proof), []string{string(ProofGone), string(ProofExiting)}},
		{"fence", string(r.Fence), []string{string(FenceProcess), string(FenceTree), string(FenceToken)}},
		{"scheduling", string(r.Scheduling), []string{string(SchedulingNormal), string(SchedulingNice), string(SchedulingFIFO)}},
		{"restart", string(r.Restart), []string{string(RestartAlways), string(RestartOnFailure), string(RestartNever)}},
		{"on_hook_failure", r.HookFailure, []string{"keep", "demote"}},
	} {
		if !slices.Contains(w.allowed, w.value) {
			return bad(w.field, "%q, must be one of %s", w.value, strings.Join(w.allowed, ", "))
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
		zero  bool // zero is allowed
	}{
		{"restart_delay", r.RestartDelay, true}, {"restart_max_delay", r.RestartMaxDelay, true},
		{"burst_per", r.BurstPer, false}, {"cool_down", r.CoolDown, false},
		{"start_timeout", r.StartTimeout, false}, {"stop_timeout", r.StopTimeout, false},
		{"drain_timeout", r.DrainTimeout, false}, {"fence_timeout", r.FenceTimeout, false},
		{"progress_timeout", r.ProgressTimeout, true}, {"per", r.Per, false},
		{"probation", r.Probation, true}, {"hook_timeout", r.HookTimeout, false},
	} {
		if d.value < 0 || d.value == 0 && !d.zero {
			return bad(d.field, "%v, must be more than 0", d.value)
		}
	}
	hang := time.Duration(r.Grace+1) * r.Tick
	switch {
	case r.RestartMaxDelay < r.RestartDelay:
		return bad("restart_max_delay", "%v is less than restart_delay, %v", r.RestartMaxDelay, r.RestartDelay)
	case r.Burst < 1:
		return bad("burst", "%d, must be 1 or more", r.Burst)
	case r.Failovers < 1:
		return bad("failovers", "%d, must be 1 or more", r.Failovers)
	case r.ProgressTimeout != 0 && r.ProgressTimeout < 2*r.Tick:
		return bad("progress_timeout", "%v is less than two ticks of %v: no worker could keep it", r.ProgressTimeout, r.Tick)
	case r.FenceTimeout < hang:
		return bad("fence_timeout", "%v is less than the time in which a hang is noticed, (grace + 1) x tick = %v", r.FenceTimeout, hang)
	case signalByName(r.StopSignal) == 0:
		return bad("stop_signal", "%q is no signal of this system", r.StopSignal)
	case r.LogMaxBytes < 4096:
		return bad("log_max_size", "%d, must be 4096 or more", r.LogMaxBytes)
	case r.LogMaxAge < 0:
		return bad("log_max_age", "%v, must be 0 or more", r.LogMaxAge)
	case r.LogKeep < 0:
		return bad("log_keep", "%d, must be 0 or more", r.LogKeep)
	}
	if err := r.validateEnvironment(bad); err != nil {
		return err
	}
	if err := r.Confine.validate(bad); err != nil {
		return err
	}
	for index := range r.WorkerOptions {
		if index < 0 || index >= r.Workers {
			return bad("worker", "index %d, there are %d workers (0 to %d)", index, r.Workers, r.Workers-1)
		}
	}
	if err := r.validateHealth(); err != nil {
		return err
	}
	if err := r.validateListeners(bad); err != nil {
		return err
	}
	for i, h := range r.Hooks {
		if h.Name == "" || h.Hooks == nil {
			return bad(fmt.Sprintf("plugin[%d].name", i), "a hook needs a name and an implementation")
		}
	}
	return nil
}

// badField makes the error about one setting of a role.
type badField func(field, format string, args ...any) error

func (r *RoleConfig) validateEnvironment(bad badField) error {
	variable := func(field, name string) error {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return bad(field, "%q is no name of a variable", name)
		}
		if reserved(name) {
			return bad(field, "%s is set by standbyd itself", name)
		}
		return nil
	}
	for name := range r.Env {
		if err := variable("env", name); err != nil {
			return err
		}
	}
	for _, name := range r.PassEnv {
		if err := variable("pass_env", name); err != nil {
			return err
		}
	}
	return nil
}

func (r *RoleConfig) validateListeners(bad badField) error {
	names := map[string]bool{}
	for i, l := range r.Listen {
		field := fmt.Sprintf("listen[%d].", i)
		switch {
		case !listenName.MatchString(l.Name):
			return bad(field+"name", "%q: only letters, digits, '.', '-' and '_' are allowed", l.Name)
		case names[l.Name]:
			return bad(field+"name", "%q is there twice", l.Name)
		case l.Address == "":
			return bad(field+"address", "there is no address")
		case l.network() != "tcp" && l.network() != "udp" && l.network() != "unix":
			return bad(field+"network", "%q, must be tcp, udp or unix", l.Network)
		case l.network() == "unix" && len(l.Address) > sockpath.Max:
			return bad(field+"address", "the path has %d bytes, the system takes %d", len(l.Address), sockpath.Max)
		}
		names[l.Name] = true
	}
	return nil
}

func (l ListenConfig) network() string { return listen.Network(l.Network, l.Address) }
