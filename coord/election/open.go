package election

import (
	"errors"
	"io/fs"

	"github.com/standbyd/standbyd/coord/shm"
)

// openOrCreate settles the race of several processes that find no file: one
// creates it, the others find it there and open it.
func openOrCreate(open, create func() (*Election, error)) (*Election, error) {
	for range 100 {
		e, err := open()
		if !errors.Is(err, fs.ErrNotExist) {
			return e, err
		}
		if e, err = create(); !errors.Is(err, shm.ErrExists) {
			return e, err
		}
	}
	return open()
}
