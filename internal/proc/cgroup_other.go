//go:build !linux

package proc

import (
	"errors"
	"io/fs"
)

// Cgroup does not exist on this system.
type Cgroup struct{}

// OpenCgroup says that there are none.
func OpenCgroup(string) (*Cgroup, error) { return nil, fs.ErrNotExist }

// RecordedCgroup finds none.
func RecordedCgroup(string, Identity) (c *Cgroup, gone bool) { return nil, false }

// Path is empty.
func (*Cgroup) Path() string { return "" }

// Populated cannot be told.
func (*Cgroup) Populated() (bool, error) { return true, errors.ErrUnsupported }

// PIDs cannot be told.
func (*Cgroup) PIDs() ([]int, error) { return nil, errors.ErrUnsupported }

// End cannot be done.
func (*Cgroup) End() error { return errors.ErrUnsupported }
