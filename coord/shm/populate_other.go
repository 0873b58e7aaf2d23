//go:build !linux

package shm

// Populate does nothing here: the first access to each page enters it.
func (s *Segment) Populate() {}
