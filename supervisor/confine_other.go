//go:build unix && !linux

package supervisor

const confines = false
