// Package shm maps a role's segment and hands out its words.
//
// A segment is one file of fixed size that every member of a role maps. It is
// created whole under another name and linked into place, so that no reader
// ever sees half of one, and it is validated before any word of it is
// trusted. layout.go has its layout as a table.
//
// This package is the only one of the project that imports unsafe, in its
// files that end in _unsafe.go. Everything else reaches shared memory through
// checked views: *atomic.Uint64 and *atomic.Uint32 that lie inside the
// mapping and are aligned.
//
// What is not promised: a file that somebody truncates while it is mapped
// faults on the next access (SIGBUS ends the process); Segment.Check, called
// once a tick, finds a file that was replaced or unlinked. The words are
// written by other processes at any time: load one into a local, check it,
// use the local.
package shm
