//go:build !linux

package shm

import "github.com/standbyd/standbyd/internal/proc"

// MonoNow is the monotonic clock in nanoseconds.
func MonoNow() int64 { return proc.MonoNow() }
