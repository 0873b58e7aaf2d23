//go:build !linux

package proc

// Stopped is not to be seen on this system.
func Stopped(int) (stopped, traced bool) { return false, false }
