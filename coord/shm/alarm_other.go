//go:build !linux

package shm

import "fmt"

// Alarm is not to be had on this system.
type Alarm struct{}

// NewAlarm is ErrNotSupported.
func NewAlarm() (*Alarm, error) { return nil, fmt.Errorf("make an alarm: %w", ErrNotSupported) }

// Set does nothing.
func (*Alarm) Set(int64) error { return ErrNotSupported }

// Wait does not wait.
func (*Alarm) Wait() error { return ErrNotSupported }

// Close does nothing.
func (*Alarm) Close() error { return nil }
