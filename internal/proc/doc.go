// Package proc identifies processes and proves their death.
//
// A process is named by an [Identity], never by a bare pid: pids are reused.
// [Judge] decides from /proc what can be proven about one, and a [Handle]
// holds a pidfd whose identity was verified after it was opened, so that a
// signal through it cannot reach a stranger.
//
// What cannot be known counts as alive. On systems without pidfd and /proc the
// weaker facts are used: a pid that does not exist is gone, everything else is
// alive.
package proc
