//go:build amd64 && !race

package lease

// unlock is a plain store: amd64 makes stores visible in their order, and the
// compiler moves none over the compare-and-swap that published the value.
func (l *writeLock) unlock() { l.word = 0 }
