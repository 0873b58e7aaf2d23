// Package heartbeat is the member table of a segment: who has joined, whether
// it lives, whether it is ready, and what it has in flight.
//
// A [Seat] is a process's place in the table: a slot and an incarnation, with
// the identity (pid and start time) by which others prove its death. A seat is
// given to another process only when its holder is proven gone and neither the
// owner word nor the active word names its pid.
//
// Not promised: that a seat's holder lives. The table says who joined; only a
// proof (internal to coord) or a heartbeat that stays behind says who died.
package heartbeat
