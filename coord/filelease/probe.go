package filelease

import (
	"errors"
	"io/fs"
	"os"
)

// What KEY.live says about the lock on it. It is empty for most holders.
const (
	wordPinned     = "pinned\n"     // the one who locked it is pinned
	wordSuperseded = "superseded\n" // the one who locked it is not the holder any more
)

// probe is a look at KEY.live, inside the critical section.
type probe struct {
	exists bool
	locked bool
	number uint64
	word   string
}

func (s *Store) probe(key string) (p probe, err error) {
	f, err := openProbe(s.file(key, liveSuffix), s.network)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	defer f.Close()
	p.exists, p.number = true, fileNumber(f)
	free, err := tryLock(f)
	if err != nil {
		return p, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	if free {
		dropLock(f)
	}
	p.locked = !free
	if p.locked {
		b := make([]byte, 64)
		n, _ := f.ReadAt(b, 0)
		p.word = string(b[:n])
	}
	return p, nil
}

// takeLive locks KEY.live for a holder, and says there what kind that is. It
// is nil, without an error, if somebody has it locked: an earlier holder that
// is stopped, or a process that inherited its descriptor. Then that is noted
// there: its lock says nothing about the lease any more.
func (s *Store) takeLive(key string, pinned bool) (*os.File, error) {
	path := s.file(key, liveSuffix)
	f, err := tryAcquire(path)
	word := ""
	switch {
	case err == nil && pinned:
		word = wordPinned
	case err == nil:
	case errors.Is(err, ErrBusy):
		return nil, setWord(path, wordSuperseded)
	default:
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && (fi.Size() > 0 || word != "") {
		err = setWord(path, word)
	}
	if err != nil {
		unlock(f)
		return nil, err
	}
	return f, nil
}

func setWord(path, word string) error {
	f, err := openLock(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(word), 0)
	return err
}
