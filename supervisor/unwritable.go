package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// atRuntime is an error about something in the runtime folder that names no
// path: sockets, FIFOs and the blocks of a segment.
type atRuntime struct{ error }

func (e atRuntime) Unwrap() error { return e.error }

// unwritable says of an error by which Run could not begin, if one of the two
// folders takes nothing, which one that is and what to do.
func (s *Supervisor) unwritable(err error) error {
	var setting *ConfigError
	var runtime atRuntime
	c := &s.config
	field, path := "", pathOf(err)
	named := errors.As(err, &setting) && setting.Role == ""
	switch {
	case named && (setting.Field == "state_dir" || setting.Field == "runtime_dir"):
		field = setting.Field
	case under(path, c.StateDir):
		field = "state_dir"
	case under(path, c.RuntimeDir):
		field = "runtime_dir"
	case path != "": // somewhere else
		return err
	case errors.As(err, &runtime):
		field = "runtime_dir"
	case outOfSpace(err):
		field = "state_dir"
	default:
		return err
	}
	folder := map[string]string{"state_dir": c.StateDir, "runtime_dir": c.RuntimeDir}[field]
	msg := ""
	switch {
	case outOfSpace(err):
		msg = fmt.Sprintf("there is no space for what has to be written to %s; make space there, and start again: workers that run go on meanwhile", folder)
	case errors.Is(err, syscall.EROFS):
		msg = fmt.Sprintf("%s is on a file system that is read-only; mount it writable, or set %s to a folder that can be written to", folder, field)
	case errors.Is(err, fs.ErrPermission):
		msg = fmt.Sprintf("uid %d may not write to %s; %s", os.Geteuid(), folder, otherFolder(folder, field))
	default:
		return err
	}
	if named && setting.Err != nil {
		err = setting.Err
	}
	return &ConfigError{Field: field, Msg: msg, Err: err}
}

// outOfSpace: a file system, or what a user may have of it, has no space left.
func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// otherFolder is what to do about a folder that is not ours.
func otherFolder(folder, field string) string {
	who := "a user that may"
	if info, err := os.Stat(folder); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
			who = fmt.Sprintf("its owner, uid %d", st.Uid)
		}
	}
	return fmt.Sprintf("run standbyd as %s, or set %s to a folder of your own", who, field)
}

// pathOf is the path that an error is about, "" if it names none.
func pathOf(err error) string {
	var at *fs.PathError
	var between *os.LinkError
	switch {
	case errors.As(err, &at):
		return at.Path
	case errors.As(err, &between):
		return between.New
	}
	return ""
}

func under(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
