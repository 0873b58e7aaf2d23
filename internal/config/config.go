package config

import (
	"errors"
	"strings"

	"github.com/standbyd/standbyd/supervisor"
)

// Config is a config file, checked and with every default filled in.
type Config struct {
	File string // absolute path of the file
	// Files are what was read, as messages name it: the file, and its parts in
	// the order of their names.
	Files  []string
	Daemon Daemon
	Roles  []Role // in the order of the file
	// Warnings are about what stops nothing: a program that does not exist
	// (yet), a limit that is likely to be too tight.
	Warnings []Problem

	reader *reader
}

// Blame turns an error that the supervisor raised about a setting into a
// Problem with the setting's place in the file. ok is false if err is about
// no setting.
func (c *Config) Blame(err error) (p Problem, ok bool) {
	var setting *supervisor.ConfigError
	if c.reader == nil || !errors.As(err, &setting) {
		return Problem{}, false
	}
	key := "supervisor." + setting.Field
	if setting.Role != "" {
		key = joinPath("role", setting.Role) + "." + setting.Field
	}
	msg := setting.Msg
	if setting.Err != nil {
		if msg != "" {
			msg += ": "
		}
		msg += setting.Err.Error()
	}
	at := c.reader.placeOf(key)
	for _, list := range []string{"listen", "plugin", "worker"} { // "[0]" tells nothing if there is no other
		if only := joinPath("role", setting.Role) + "." + list; !c.reader.set(indexPath(only, 1)) {
			key = strings.Replace(key, indexPath(only, 0), only, 1)
		}
	}
	return c.reader.problem(at, key, "", "%s", msg), true
}

// DaemonKey is the key of a field of Daemon, "" for one that follows from others.
func DaemonKey(field string) string {
	return map[string]string{"LogLevel": "log_level", "LogFormat": "log_format", "RuntimeDir": "runtime_dir", "StateDir": "state_dir",
		"MetricsAddress": "metrics_address", "ControlGroup": "control_group", "ControlAccess": "control_access", "Cgroups": "cgroups"}[field]
}

// Daemon is the [supervisor] table.
type Daemon struct {
	LogLevel   string
	LogFormat  string
	RuntimeDir string // absolute
	StateDir   string // absolute
	// MetricsAddress is a host:port of this machine, or "".
	MetricsAddress string
	// ControlGroup may use the control socket: its name or number, or "".
	ControlGroup string
	// ControlGID is its number; -1 without one.
	ControlGID    int
	ControlAccess string // "read" or "full": what the group may do
	Cgroups       supervisor.CgroupMode
}

// Role is one [role.NAME] table.
type Role struct {
	supervisor.RoleConfig                   // Env has env_file and env merged; Hooks is empty
	EnvTable              map[string]string // the env key alone
	EnvFile               string            // absolute, or ""
	Plugins               []Plugin          // in the order of the file
	Hints                 []string
}

// Plugin is one [[role.NAME.plugin]] table.
type Plugin struct {
	Name    string
	Command []string // the first word is absolute, or to be found in PATH
	SHA256  string
	Env     map[string]string
	// AutoMTLS encrypts the connection to it.
	AutoMTLS bool
	Table    map[string]any // its config, as it stands in the file
}

// Worker is one [[role.NAME.worker]] table.
type Worker struct {
	Index int
	supervisor.WorkerOptions
}

// Listen is one [[role.NAME.listen]] table.
type Listen = supervisor.ListenConfig

// DefaultDaemon returns the [supervisor] table of an empty file, for this user.
func DefaultDaemon() Daemon {
	return Daemon{LogLevel: "info", LogFormat: "text", RuntimeDir: DefaultRuntimeDir(), StateDir: DefaultStateDir(),
		ControlGID: -1, ControlAccess: "read", Cgroups: supervisor.CgroupsAuto}
}

// DefaultRole returns a role with every default. Name, Command and Dir are empty.
func DefaultRole() Role {
	return Role{RoleConfig: supervisor.DefaultRole()}
}

// Supervisor returns what supervisor.New wants. Hooks are left to the caller:
// they come from Role.Plugins.
func (c *Config) Supervisor() supervisor.Config {
	out := supervisor.Config{RuntimeDir: c.Daemon.RuntimeDir, StateDir: c.Daemon.StateDir, ConfigFile: c.File, Cgroups: c.Daemon.Cgroups}
	for _, r := range c.Roles {
		out.Roles = append(out.Roles, r.RoleConfig)
	}
	return out
}
