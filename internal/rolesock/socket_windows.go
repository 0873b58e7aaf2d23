//go:build windows

package rolesock

import "os"

// Socket does not exist here.
type Socket struct{}

// Listen is ErrNotSupported.
func Listen(path string, uid, gid int) (*Socket, error) { return nil, ErrNotSupported }

// Receive is ErrNotSupported.
func (*Socket) Receive() (Message, error) { return Message{}, ErrNotSupported }

// Path is empty.
func (*Socket) Path() string { return "" }

// Lost is false.
func (*Socket) Lost() bool { return false }

// Ignored is 0.
func (*Socket) Ignored() uint64 { return 0 }

// Close does nothing.
func (*Socket) Close() error { return nil }

// Send is ErrNotSupported.
func Send(path, state string, files []*os.File) error { return ErrNotSupported }
