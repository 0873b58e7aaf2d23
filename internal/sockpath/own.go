package sockpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Own is a path that leads to a socket of ours. The zero value leads to none,
// and can neither be lost nor removed. Safe for concurrent use.
type Own struct {
	path string
	info fs.FileInfo
}

// Keep remembers what the path leads to: call it once the socket is bound, and
// after its mode and owner were changed.
func Keep(path string) (Own, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return Own{}, err
	}
	return Own{path, info}, nil
}

// Lost tells whether the path leads to our socket no more: it was removed or
// replaced, and nobody can connect there. What cannot be looked at is not lost.
func (o Own) Lost() bool {
	if o.info == nil {
		return false
	}
	now, err := os.Lstat(o.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, o.info)
}

// Remove removes the path if the file there is still the one that was kept.
func (o Own) Remove() error {
	if o.info == nil {
		return nil
	}
	now, err := os.Lstat(o.path)
	if err != nil || !os.SameFile(now, o.info) ||
		!now.ModTime().Equal(o.info.ModTime()) { // a removed file's number is soon given to a new one
		return nil
	}
	if err := os.Remove(o.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket: %w", err)
	}
	return nil
}
