//go:build !linux

package shm

// RobustHold stands for a registration that this system does not have.
type RobustHold struct{}

// HoldRobust is ErrNotSupported on this system.
func (s *Segment) HoldRobust(int) (*RobustHold, error) { return nil, ErrNotSupported }

// First does nothing.
func (h *RobustHold) First(int) {}

// Drop does nothing.
func (h *RobustHold) Drop(bool) {}
