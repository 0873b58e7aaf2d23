package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestFullDiskNamesTheFolder(t *testing.T) {
	s := &Supervisor{config: Config{RuntimeDir: "/run/x", StateDir: "/var/x"}}
	write := func(path string, err error) error { return &fs.PathError{Op: "write", Path: path, Err: err} }
	for _, c := range []struct {
		err   error
		field string // "": as it was
		says  string
	}{
		{fmt.Errorf("lease: %w", write("/var/x/leases/a.epoch.new", syscall.ENOSPC)), "state_dir", "written to /var/x;"},
		{&ConfigError{Field: "state_dir", Msg: "cannot be made", Err: write("/var/x/logs", syscall.EDQUOT)}, "state_dir", "written to /var/x;"},
		{write("/run/x/roles/kv/segment.1", syscall.ENOSPC), "runtime_dir", "written to /run/x;"},
		{&os.LinkError{Op: "rename", Old: "/run/x/a", New: "/run/x/b", Err: syscall.ENOSPC}, "runtime_dir", "written to /run/x;"},
		{write("/var/x/leases/a", syscall.EACCES), "", ""},
		{nil, "", ""},
	} {
		got := s.withoutSpace(c.err)
		var setting *ConfigError
		if c.field == "" {
			if !errors.Is(got, c.err) || errors.As(got, &setting) {
				t.Errorf("%v became %v", c.err, got)
			}
			continue
		}
		if !errors.As(got, &setting) || setting.Field != c.field || !strings.Contains(got.Error(), c.says) || !strings.Contains(got.Error(), "make space") || strings.Contains(got.Error(), "cannot be made") {
			t.Errorf("%v became %v", c.err, got)
		}
	}
}
