//go:build !linux

package filelease

import (
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// boottime: the monotonic clocks of these systems go on while it sleeps.
func boottime() time.Duration { return time.Duration(proc.MonoNow()) }

func timeNamespace() uint64 { return 0 }
