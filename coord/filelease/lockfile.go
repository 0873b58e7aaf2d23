package filelease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"
)

const (
	firstRetry = time.Millisecond // pause after the first failed try, doubled up to
	lastRetry  = 32 * time.Millisecond
)

// acquire locks the file at path, which is made if it is not there, and
// returns it open; unlock gives it back. It tries again until ctx ends. What
// it locked is still what the path leads to.
func acquire(ctx context.Context, path string) (*os.File, error) {
	pause := firstRetry
	for {
		f, err := tryAcquire(path)
		if !errors.Is(err, ErrBusy) {
			return f, err
		}
		t := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, fmt.Errorf("wait for %s: %w: %w", path, context.Cause(ctx), ErrBusy)
		case <-t.C:
		}
		pause = min(2*pause, lastRetry)
	}
}

// tryAcquire is ErrBusy if another open file has the lock.
func tryAcquire(path string) (*os.File, error) {
	for {
		f, err := openLock(path)
		if err != nil {
			return nil, fmt.Errorf("open lock: %w", err)
		}
		locked, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		if !locked {
			f.Close()
			return nil, ErrBusy
		}
		same, err := leadsTo(path, f)
		if err == nil && same {
			return f, nil
		}
		unlock(f)
		if err != nil {
			return nil, err
		}
		// Somebody deleted or replaced the file: what we locked is not what
		// the next one will find.
	}
}

// unlock unlocks before it closes: a child that is being started has a copy of
// the descriptor until its exec, and with it the lock.
func unlock(f *os.File) {
	if f != nil {
		dropLock(f)
		f.Close()
	}
}

func leadsTo(path string, f *os.File) (bool, error) {
	own, err := f.Stat()
	if err != nil {
		return false, err
	}
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(fi, own), nil
}
