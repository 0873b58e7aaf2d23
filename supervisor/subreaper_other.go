//go:build !linux

package supervisor

import "errors"

func becomeSubreaper() error {
	return errors.New("become the reaper of orphans: this system has no subreapers")
}

func (s *Supervisor) reapOrphans(<-chan struct{}) {}
