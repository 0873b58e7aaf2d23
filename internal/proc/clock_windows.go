//go:build windows

package proc

import "golang.org/x/sys/windows"

// MonoNow is the time since the machine's boot in nanoseconds: comparable
// between the processes of one machine boot, and never set by anybody.
func MonoNow() int64 { return int64(windows.DurationSinceBoot()) }
