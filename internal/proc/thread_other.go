//go:build !linux

package proc

import "errors"

// HurryThread can only leave a thread as it is on this system.
func HurryThread(p Pace) (back func(), err error) {
	if p != PaceNormal {
		err = errors.New("set the pace of a thread: not supported on this system")
	}
	return func() {}, err
}

// OnMainThread is not known on this system.
func OnMainThread() bool { return false }
