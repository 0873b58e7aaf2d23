//go:build !linux

package shm

import (
	"fmt"

	"github.com/standbyd/standbyd/internal/proc"
)

// Alarm is not to be had on this system.
type Alarm struct{}

// NewAlarm is ErrNotSupported.
func NewAlarm() (*Alarm, error) { return nil, fmt.Errorf("make an alarm: %w", ErrNotSupported) }

// Set does nothing.
func (*Alarm) Set(int64) error { return ErrNotSupported }

// Wait does not wait.
func (*Alarm) Wait() error { return ErrNotSupported }

// Now is the monotonic clock in nanoseconds.
func (*Alarm) Now() int64 { return proc.MonoNow() }

// Close does nothing.
func (*Alarm) Close() error { return nil }
