//go:build windows

package filelease

// groupGone: there are no process groups here.
func groupGone(int) bool { return true }
