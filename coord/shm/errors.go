package shm

import "errors"

// These can be returned when a segment is created.
var (
	// ErrExists: the path exists. It was not touched.
	ErrExists = errors.New("segment exists")
	// ErrParams: a parameter is out of its range.
	ErrParams = errors.New("segment parameter out of range")
)

// These can be returned when a segment is opened. The file was not changed.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrOwner      = errors.New("file belongs to another user")
	ErrMode       = errors.New("file may be written by others than its owner")
	ErrMagic      = errors.New("not a standbyd segment")
	ErrVersion    = errors.New("segment layout version is not supported")
	ErrSize       = errors.New("segment has the wrong size")
	ErrChecksum   = errors.New("segment header is damaged")
)

// These can be returned while a segment is in use.
var (
	// ErrGone: the file was unlinked, replaced, truncated or overwritten.
	ErrGone = errors.New("segment file is gone")
	// ErrNotSupported: this system cannot do it.
	ErrNotSupported = errors.New("not supported on this system")
)
