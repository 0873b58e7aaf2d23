//go:build unix

package launch

import "sync/atomic"

var staging atomic.Bool

// Stage says that this program may execute itself to start others through a
// stage. A process that is one does not get to main, see package stage.
func Stage() { staging.Store(true) }

// CanStage reports whether this process has called Stage, so that Spec.Staged
// works.
func CanStage() bool { return staging.Load() }
