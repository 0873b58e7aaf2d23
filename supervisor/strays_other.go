//go:build !linux

package supervisor

import "github.com/standbyd/standbyd/internal/proc"

// strays needs the environment of other processes.
func strays(string, string, func(proc.Identity) bool) []proc.Identity { return nil }

func descends(proc.Identity, proc.Identity, string, string) bool { return false }
