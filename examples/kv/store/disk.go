package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/standbyd/standbyd/coord/role"
)

// disk is what the store asks of the operating system when it writes. Tests
// put failures in its place.
type disk struct {
	writeAt func(f *os.File, b []byte, offset int64) (int, error)
	sync    func(f *os.File) error
}

var realDisk = disk{
	writeAt: (*os.File).WriteAt,
	sync:    (*os.File).Sync,
}

const tempSuffix = ".tmp"

func isTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, tempSuffix)
}

// tempToken returns the token of the leader that began a temporary file.
func tempToken(name string) (role.Token, bool) {
	_, rest, _ := strings.Cut(name, "-")
	digits, _, _ := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return role.Token(n), err == nil
}

// publish gives the finished file f, a temporary one in dir, the name that it
// will be found by. Its contents and its name are durable when publish
// returns. A file that has the name already is an error and stays as it is.
func (d disk) publish(dir string, f *os.File, name string) error {
	if err := d.sync(f); err != nil {
		return fmt.Errorf("sync %s: %w", name, err)
	}
	// A link, not a rename: it never replaces anything.
	if err := os.Link(f.Name(), filepath.Join(dir, name)); err != nil {
		return fmt.Errorf("put %s in place: %w", name, err)
	}
	os.Remove(f.Name())
	return d.syncDir(dir)
}

func (d disk) syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync the folder: %w", err)
	}
	defer f.Close()
	if err := d.sync(f); err != nil {
		return fmt.Errorf("sync the folder: %w", err)
	}
	return nil
}
