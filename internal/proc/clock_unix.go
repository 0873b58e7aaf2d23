//go:build unix

package proc

import "golang.org/x/sys/unix"

// MonoNow is CLOCK_MONOTONIC in nanoseconds: comparable between the processes
// of one machine boot, and never set by anybody.
func MonoNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}
