//go:build linux

package filelease

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/proc"
)

func boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Duration(proc.MonoNow())
	}
	return time.Duration(ts.Nano())
}

// bootOf names the machine's boot.
func bootOf(self proc.Identity) uint64 { return self.Boot }

// timeNamespace is 0 if the kernel has none. Boottime, and the start times of
// processes, are comparable within one only.
func timeNamespace() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/time", &st) != nil {
		return 0
	}
	return st.Ino
}
