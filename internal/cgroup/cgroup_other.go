//go:build !linux

package cgroup

import "github.com/standbyd/standbyd/internal/proc"

// Home does not exist on this system.
type Home struct{}

// Open says that there are none.
func Open(string, []string, bool) (*Home, error) { return nil, ErrNone }

// Dir is empty.
func (*Home) Dir() string { return "" }

// Close does nothing.
func (*Home) Close() error { return nil }

// Make makes none.
func (*Home) Make(string, string, Limits, int) (*proc.Cgroup, error) { return nil, ErrNone }

// Available says that no limit can be set.
func Available(controllers []string) error {
	if len(controllers) == 0 {
		return nil
	}
	return ErrNone
}

// List finds none.
func List(string, string) []string { return nil }

// Roles finds none.
func Roles(string) []string { return nil }

// Join says that there are none.
func Join(string, int) error { return ErrNone }

// Remove has nothing to do.
func Remove(string) error { return nil }
