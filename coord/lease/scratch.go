package lease

import "sync/atomic"

// scratch keeps one T on the heap for WithLease, whose function gets a pointer
// to it, so that the call does not allocate. Whoever comes while it is lent out
// gets a new one.
type scratch[T any] struct {
	value atomic.Pointer[T]
}

func (s *scratch[T]) borrow() *T {
	if v := s.value.Swap(nil); v != nil {
		return v
	}
	return new(T)
}

func (s *scratch[T]) giveBack(v *T) { s.value.Store(v) }
