//go:build unix

// Package stage is what a process of this program is between its fork and the
// exec of the program that was wanted: it waits at a gate for its [Order],
// sets what the order says, executes, and reports which step failed if it does
// not get there.
//
// A process that is executed with [Argv] becomes a stage before main begins,
// and before most other packages are initialised: Go initialises packages by
// their path among those whose imports are ready, so that this one, which
// imports little, is not behind the tables of grpc, net/http and others. A
// stage costs a third of a start of the whole program that way. Nothing but
// that price depends on the order.
//
// So this package imports os, syscall, strconv and errors alone.
package stage
