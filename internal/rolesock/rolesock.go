// Package rolesock is the datagram socket over which the workers of a role
// speak to their supervisor, in the syntax of systemd's sd_notify: lines of
// KEY=VALUE, and open files that travel beside them.
//
// It carries hints and files, no authority: what is true stands in the role's
// segment. A datagram may be lost (nobody listens, the queue is full) and then
// only costs time. Whoever may write to the socket's path may send anything;
// the path belongs to the role's user, mode 0600.
//
// The receiving half needs Unix. On Windows every call is ErrNotSupported.
package rolesock

import (
	"errors"
	"os"
)

const (
	// MaxState is the longest text of one datagram, in bytes.
	MaxState = 16 << 10
	// MaxFiles is how many open files one datagram can carry.
	MaxFiles = 64
)

// These can be returned by Listen.
var (
	// ErrInUse: another live process receives on the path.
	ErrInUse = errors.New("another process listens there")
	// ErrNotSupported: the system has no such sockets.
	ErrNotSupported = errors.New("role sockets are not supported on this system")
)

// These can be returned by Send.
var (
	// ErrNobody: nobody listens on the path, or there is no such path.
	ErrNobody = errors.New("nobody listens there")
	// ErrFull: the receiver has not read what it was sent before. Worth a later try.
	ErrFull = errors.New("the receiver's queue is full")
)

// Message is one datagram.
type Message struct {
	// PID and UID are the sender's, attested by the kernel. PID is 0, and UID
	// -1, where the kernel does not say (not Linux, or a sender of another pid
	// namespace).
	PID, UID int
	// Fields has the lines of the text; the last one wins if a key repeats.
	// Never nil.
	Fields map[string]string
	// Files are the caller's to close.
	Files []*os.File
}

// CloseFiles closes what the message carried. The zero Message has nothing.
func (m Message) CloseFiles() {
	for _, f := range m.Files {
		f.Close()
	}
}
