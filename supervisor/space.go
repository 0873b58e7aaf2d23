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

// withoutSpace says of an error by which Run could not begin, if a full disk
// is behind it, which folder has to get space.
func (s *Supervisor) withoutSpace(err error) error {
	c := &s.config
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	path := ""
	var at *fs.PathError
	var between *os.LinkError
	switch {
	case errors.As(err, &at):
		path = at.Path
	case errors.As(err, &between):
		path = between.New
	}
	field, folder := "state_dir", c.StateDir
	if under(path, c.RuntimeDir) && !under(path, c.StateDir) {
		field, folder = "runtime_dir", c.RuntimeDir
	}
	var setting *ConfigError
	if errors.As(err, &setting) && setting.Role == "" && setting.Err != nil {
		err = setting.Err
	}
	return &ConfigError{Field: field, Msg: fmt.Sprintf("there is no space for what has to be written to %s; make space there, and start again: workers that run go on meanwhile", folder), Err: err}
}

func under(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
