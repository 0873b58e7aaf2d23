package supervisor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/standbyd/standbyd/internal/wording"
)

// Where things are. Everything of a role that lives as long as the machine is
// in its own folder.

const socketName = "notify.sock"

func rolesDir(runtimeDir string) string { return filepath.Join(runtimeDir, "roles") }

type rolePaths struct{ dir, logs, ends string }

func (p rolePaths) segment(generation uint64) string {
	return filepath.Join(p.dir, fmt.Sprintf("segment.%d", generation))
}
func (p rolePaths) socket() string     { return filepath.Join(p.dir, socketName) }
func (p rolePaths) workers() string    { return filepath.Join(p.dir, "workers.json") }
func (p rolePaths) fifo(i int) string  { return filepath.Join(p.dir, fmt.Sprintf("%d.fifo", i)) }
func (p rolePaths) ready(i int) string { return filepath.Join(p.dir, fmt.Sprintf("%d.ready", i)) }
func (p rolePaths) deaths(worker string) string {
	return filepath.Join(p.ends, worker+".jsonl")
}
func (p rolePaths) plugins() string      { return filepath.Join(p.dir, "p") }
func (p rolePaths) hookDir(i int) string { return filepath.Join(p.plugins(), fmt.Sprint(i)) }
func (p rolePaths) log(worker string) string {
	return filepath.Join(p.logs, worker+".log")
}
func (p rolePaths) pluginLog(role string) string {
	return filepath.Join(p.logs, role+".plugins.log")
}

// stateMode is the mode of the folders of what outlives a reboot: its readers
// may be of a group.
const stateMode = 0o750

func roleDir(runtimeDir, role string) string { return filepath.Join(rolesDir(runtimeDir), role) }
func logsDir(stateDir string) string         { return filepath.Join(stateDir, "logs") }
func leasesDir(stateDir string) string       { return filepath.Join(stateDir, "leases") }
func historyPath(stateDir string) string     { return filepath.Join(stateDir, "history.jsonl") }

// passage is the mode of the folders above the roles': users of roles pass
// through to their own, and without root there are none.
func passage() fs.FileMode {
	if os.Geteuid() == 0 {
		return 0o711
	}
	return 0o700
}

// prepareFolders makes the folders of a supervisor. Both must be its own and
// writable by nobody else: whoever writes to one could replace segments and
// sockets, to the other, counters and history. What is in the first the roles
// make.
func prepareFolders(runtimeDir, stateDir string) error {
	mode := passage()
	if err := os.MkdirAll(runtimeDir, mode); err != nil {
		return &ConfigError{Field: "runtime_dir", Msg: "cannot be made", Err: err}
	}
	info, err := os.Lstat(runtimeDir)
	if err != nil {
		return &ConfigError{Field: "runtime_dir", Msg: "cannot be used", Err: err}
	}
	uid := os.Geteuid()
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != uid {
		return notOurs(runtimeDir, "runtime_dir", int(st.Uid))
	}
	if !info.IsDir() {
		return &ConfigError{Field: "runtime_dir", Msg: fmt.Sprintf("%s (%v) is no folder; remove it, or set runtime_dir to another path", runtimeDir, wording.Mode(info.Mode()))}
	}
	if msg := Exposed(runtimeDir); msg != "" {
		return &ConfigError{Field: "runtime_dir", Msg: msg}
	}
	if err := os.MkdirAll(stateDir, stateMode); err != nil {
		return &ConfigError{Field: "state_dir", Msg: "cannot be made", Err: err}
	}
	state, err := os.Stat(stateDir) // which may be a link
	if err != nil {
		return &ConfigError{Field: "state_dir", Msg: "cannot be used", Err: err}
	}
	if os.SameFile(info, state) {
		return &ConfigError{Field: "state_dir", Msg: oneFolder}
	}
	// What root may change it may change wherever it is.
	if st, ok := state.Sys().(*syscall.Stat_t); ok && int(st.Uid) != uid && st.Uid != 0 {
		return notOurs(stateDir, "state_dir", int(st.Uid))
	}
	if msg := Exposed(stateDir); msg != "" {
		return &ConfigError{Field: "state_dir", Msg: msg}
	}
	for _, dir := range []string{logsDir(stateDir), deathsDir(stateDir)} {
		if err := os.MkdirAll(dir, stateMode); err != nil {
			return &ConfigError{Field: "state_dir", Msg: "cannot be made", Err: err}
		}
	}
	return nil
}

func notOurs(folder, field string, owner int) error {
	return &ConfigError{Field: field, Msg: fmt.Sprintf("%s belongs to uid %d and standbyd runs as uid %d; %s", folder, owner, os.Geteuid(), otherFolder(folder, field))}
}

// Exposed says that others than its owner may write to a folder, which a
// supervisor refuses to run with, and what to do. Empty: they may not, or it
// cannot be seen. Who may write to the folders above it does not matter to it.
func Exposed(dir string) string {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o022 == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%v) must be a folder that only its owner may write to; `chmod go-w %s`, if nobody else uses it", dir, wording.Mode(info.Mode()), dir)
}

// oneFolder is said where the two folders are the same.
const oneFolder = "is the same folder as runtime_dir; set it to another one: what is in runtime_dir may be lost at a reboot, and tokens never fall only as long as state_dir is not"
