//go:build unix

// Package logreader lets the capture of a role's output go on while its
// supervisor is dead, stopped or being replaced: by a process of its own for
// each role, the reader.
//
// The reader is this program executed again, under the name "standbyd-reader";
// main must call [Stage] first. It reads the FIFOs of the role's workers with
// package capture, and does what its supervisor tells it over a socket. [Reader]
// is the supervisor's side.
//
// # Its life
//
// The first supervisor starts it, and records its identity in reader.json in
// the role's folder, before it runs. The next supervisor finds it by the socket
// reader.sock there; by the record, if it cannot be reached; or by a mark in
// its environment, if the folder was cleaned. What can be reached is taken
// over as it is. A reader of another version hands its FIFOs, with the
// beginnings of unfinished lines, to the supervisor, which gives them to a new
// one: no byte is lost. What cannot be reached is ended first.
//
// It ends when it is told, after what was written before is on disk; or by
// itself when no supervisor has been there for [Linger] and no process has one
// of its FIFOs open for writing. SIGTERM makes that while zero; SIGUSR1 ends it
// at once, in order.
//
// If it dies or does not read, the supervisor starts another one. The
// supervisor holds each FIFO open too, and never reads it: what was written
// meanwhile waits there. Only what the dead reader had read and not yet written
// is lost.
//
// Two readers on one FIFO would tear lines apart. A reader holds a lock on each
// FIFO itself, so there never are two, however they came to be.
//
// Linux only; elsewhere the supervisor reads by itself.
package logreader

import "time"

const (
	// Linger is how long a reader without a supervisor waits for the next one
	// when no process can write to its FIFOs any more.
	Linger = 10 * time.Second

	// protocol is raised when a message changes its meaning. "hello",
	// "handover" and "end" never do: they are how versions replace each other.
	protocol = 1

	// name is argv[0] of a reader: what ps shows.
	name = "standbyd-reader"
	// mark is the variable that tells by its environment whose reader it is.
	mark = "STANDBYD_READER"

	socketName = "reader.sock"
	recordName = "reader.json"
)
