package main

import "runtime"

// places are the depths of the stack at which a runner is tried, eight bytes
// apart: all that differ in how what lies there falls into the lines of the
// cache. A copy of 48 bytes that crosses one costs a third more, and where it
// lies is an accident of its callers' frames.
var places = [...]func(r runner, n int){
	runner.run, below[[8]byte], below[[16]byte], below[[24]byte], below[[32]byte], below[[40]byte], below[[48]byte], below[[56]byte],
}

func (r runner) run(n int) { r(n) }

// at runs n times in one of the places.
func (r runner) at(place, n int) { places[place%len(places)](r, n) }

// below runs n times below room on the stack.
//
//go:noinline
func below[T any](r runner, n int) {
	var room T
	r(n)
	runtime.KeepAlive(&room)
}
