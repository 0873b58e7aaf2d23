//go:build !amd64 || race

package lease

import "sync/atomic"

func (l *writeLock) unlock() { atomic.StoreUint32(&l.word, 0) }
