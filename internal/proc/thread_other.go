//go:build !linux

package proc

import "errors"

// HurryThread can only leave a thread as it is on this system.
func HurryThread(p Pace) (Hurry, error) {
	if p != PaceNormal {
		return Hurry{}, errors.New("set the pace of a thread: not supported on this system")
	}
	return Hurry{}, nil
}

// Hurry stands for what is not changed on this system.
type Hurry struct{}

// Round does nothing.
func (Hurry) Round() {}

// Slow does nothing.
func (Hurry) Slow() {}

// OnMainThread is not known on this system.
func OnMainThread() bool { return false }
