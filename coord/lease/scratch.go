package lease

// scratch keeps one T on the heap for WithLease, whose function gets a pointer
// to it, so that the call does not allocate. Whoever comes while it is lent out
// gets a new one.
type scratch[T any] struct {
	lent  writeLock
	value T
}

func (s *scratch[T]) borrow() *T {
	if s.lent.tryLock() {
		return &s.value
	}
	return new(T)
}

func (s *scratch[T]) giveBack(v *T) {
	if v == &s.value {
		s.lent.unlock()
	}
}
