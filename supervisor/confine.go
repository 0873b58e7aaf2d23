package supervisor

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/standbyd/standbyd/internal/cgroup"
	"github.com/standbyd/standbyd/internal/launch"
)

// Confinement is what a worker's process may have and do. The zero value
// leaves everything as it is with the supervisor; anything else needs the
// launch stage (see Stage). What cannot be applied is an error of New, or of
// the worker's start, with the step that failed; nothing is left out silently.
type Confinement struct {
	Umask       *int // permission bits that new files do not get; nil: the supervisor's
	Nice        *int // -20 to 19; nil: the supervisor's
	OOMScoreAdj *int // -1000 to 1000; nil: the supervisor's. Linux only
	NoNewPrivs  bool // setuid programs and file capabilities grant nothing. Linux only

	NoFile  *Limit // open files
	Core    *Limit // bytes of a core dump
	AS      *Limit // bytes of address space
	NProc   *Limit // processes of the user
	MemLock *Limit // bytes locked in memory

	// Limits of the worker with all of its descendants, by its cgroup.
	MemoryMax int64 // bytes; 0: none
	CPUMax    int   // percent of one CPU; 0: none
	PIDsMax   int   // processes and threads; 0: none
}

// Limit is a resource limit: Soft is in force, and the process may raise it up
// to Hard.
type Limit struct{ Soft, Hard uint64 }

// Unlimited is the Limit value that limits nothing.
const Unlimited = launch.Unlimited

// limits lists what is set, by the names of the config keys.
func (c *Confinement) limits() (list []launch.Limit) {
	for _, l := range []struct {
		name  string
		value *Limit
	}{{"nofile", c.NoFile}, {"core", c.Core}, {"as", c.AS}, {"nproc", c.NProc}, {"memlock", c.MemLock}} {
		if l.value != nil {
			list = append(list, launch.Limit{Name: l.name, Soft: l.value.Soft, Hard: l.value.Hard})
		}
	}
	return list
}

func (c *Confinement) settings() launch.Settings {
	return launch.Settings{Nice: c.Nice, OOMScoreAdj: c.OOMScoreAdj, NoNewPrivs: c.NoNewPrivs, Limits: c.limits()}
}

func (c *Confinement) groupLimits() cgroup.Limits {
	return cgroup.Limits{Memory: c.MemoryMax, CPU: c.CPUMax, PIDs: c.PIDsMax}
}

// groupLimit names the first limit that a cgroup sets, or "".
func (c *Confinement) groupLimit() string {
	switch {
	case c.MemoryMax != 0:
		return "memory_max"
	case c.CPUMax != 0:
		return "cpu_max"
	case c.PIDsMax != 0:
		return "pids_max"
	}
	return ""
}

// validate checks the values alone.
func (c *Confinement) validate(bad badField) error {
	for _, n := range []struct {
		field  string
		value  *int
		lo, hi int
	}{{"umask", c.Umask, 0, 0o777}, {"nice", c.Nice, -20, 19}, {"oom_score_adj", c.OOMScoreAdj, -1000, 1000}} {
		if n.value != nil && (*n.value < n.lo || *n.value > n.hi) {
			return bad(n.field, "%d, must be %d to %d", *n.value, n.lo, n.hi)
		}
	}
	for _, l := range c.limits() {
		if l.Soft > l.Hard {
			return bad("limit_"+l.Name, "the soft limit is above the hard one: %v", l)
		}
	}
	for _, n := range []struct {
		field string
		value int64
	}{{"memory_max", c.MemoryMax}, {"cpu_max", int64(c.CPUMax)}, {"pids_max", int64(c.PIDsMax)}} {
		if n.value < 0 {
			return bad(n.field, "%d, must be 0 (no limit) or more", n.value)
		}
	}
	return nil
}

// staged names the first setting that only the launch stage can make, or "".
func (c *RoleConfig) staged() (field string) {
	p := &c.Confine
	list := []struct {
		field string
		set   bool
	}{
		{"umask", p.Umask != nil}, {"nice", p.Nice != nil}, {"oom_score_adj", p.OOMScoreAdj != nil}, {"no_new_privs", p.NoNewPrivs},
		{"memory_max", p.MemoryMax != 0}, {"cpu_max", p.CPUMax != 0}, {"pids_max", p.PIDsMax != 0},
		{"fence", c.Fence == FenceTree},
	}
	for _, l := range p.limits() {
		list = append(list, struct {
			field string
			set   bool
		}{"limit_" + l.Name, true})
	}
	for _, s := range list {
		if s.set {
			return s.field
		}
	}
	return ""
}

// Applicable says which of the role's settings this machine refuses, whoever
// runs the supervisor: a *ConfigError, or nil. It looks and changes nothing.
func (c *RoleConfig) Applicable() error {
	bad := func(field string, err error) error {
		return &ConfigError{Role: c.Name, Field: field, Msg: "cannot be applied here", Err: err}
	}
	if !confines {
		switch {
		case c.Confine.OOMScoreAdj != nil:
			return bad("oom_score_adj", fmt.Errorf("only Linux has it"))
		case c.Confine.NoNewPrivs:
			return bad("no_new_privs", fmt.Errorf("only Linux has it"))
		}
	}
	limits := c.Confine.groupLimits()
	for _, l := range []struct {
		field string
		alone cgroup.Limits
	}{
		{"memory_max", cgroup.Limits{Memory: limits.Memory}}, {"cpu_max", cgroup.Limits{CPU: limits.CPU}}, {"pids_max", cgroup.Limits{PIDs: limits.PIDs}},
	} {
		if err := cgroup.Available(l.alone.Controllers()); err != nil {
			return bad(l.field, err)
		}
	}
	return nil
}

// passed are the variables of this process that the role's pass_env names. A
// name that ends in '*' stands for all that begin like it.
func passed(names []string) (env []string) {
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if reserved(name) {
			continue
		}
		if slices.ContainsFunc(names, func(wanted string) bool {
			prefix, all := strings.CutSuffix(wanted, "*")
			return name == wanted || all && strings.HasPrefix(name, prefix)
		}) {
			env = append(env, kv)
		}
	}
	return env
}

// reserved tells whether standbyd sets the variable itself.
func reserved(name string) bool {
	return name == "NOTIFY_SOCKET" || strings.HasPrefix(name, "STANDBYD_") || strings.HasPrefix(name, "LISTEN_")
}
