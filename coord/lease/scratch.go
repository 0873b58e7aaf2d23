package lease

// scratch keeps one T on the heap for WithLease, whose function gets a pointer
// to it, so that the call does not allocate. It is guarded by the lock that
// keeps the handle's writes apart.
type scratch[T any] struct{ value T }
