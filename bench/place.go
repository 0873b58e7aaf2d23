package main

import "runtime"

// places is in how many places of the stack a runner is tried, eight bytes apart:
// all that differ in how what lies there falls into the lines of the cache. A
// copy of 48 bytes that crosses one costs a third more, and where it lies is an
// accident of its callers' frames.
const places = 8

// at runs n times in one of the places.
func (r runner) at(place, n int) {
	switch place % places {
	case 0:
		r(n)
	case 1:
		below[[8]byte](r, n)
	case 2:
		below[[16]byte](r, n)
	case 3:
		below[[24]byte](r, n)
	case 4:
		below[[32]byte](r, n)
	case 5:
		below[[40]byte](r, n)
	case 6:
		below[[48]byte](r, n)
	case 7:
		below[[56]byte](r, n)
	}
}

// below runs n times below room on the stack.
//
//go:noinline
func below[T any](r runner, n int) {
	var room T
	r(n)
	runtime.KeepAlive(&room)
}
