//go:build unix && !linux

package host

// killLeftovers finds nobody here: environments of others cannot be read.
func killLeftovers(string) {}
