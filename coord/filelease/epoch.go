package filelease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
)

// NextEpoch hands out the next epoch of key: one more than any before, also
// than those of the key's leases. It is on disk before the return; if that is
// not possible, it is not handed out and the old counter stays.
func (s *Store) NextEpoch(ctx context.Context, key string) (uint64, error) {
	var epoch uint64
	err := s.critical(ctx, key, func(section) error {
		f, err := s.find(key)
		if err == nil && f.damaged != nil {
			err = fmt.Errorf("%s is %w: %v", s.file(key, leaseSuffix), ErrUnreadable, f.damaged)
		}
		if err == nil {
			epoch, err = s.nextEpoch(key, f.epoch)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return epoch, nil
}

// RaiseEpoch makes the last epoch of key at least n, on disk before the return:
// every later one is above n. For a counter that was lost, by who remembers
// what it had handed out. One that is higher already stays.
func (s *Store) RaiseEpoch(ctx context.Context, key string, n uint64) error {
	return s.critical(ctx, key, func(in section) error { return s.raise(in, key, n, false) })
}

// raise makes the counter of key at least n; a damaged one is an error, or is
// put aside for that if mend is true. Inside the critical section.
func (s *Store) raise(in section, key string, n uint64, mend bool) error {
	path := s.file(key, epochSuffix)
	last, err := readCounter(path)
	damaged := errors.Is(err, ErrUnreadable)
	if err != nil && !(damaged && mend) || err == nil && last >= n {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	if damaged {
		if err := putAside(path, path+".bad"); err != nil {
			return fmt.Errorf("mend the counter: %w", err)
		}
	}
	return replaceFile(path, fmt.Appendf(nil, "%d\n", n))
}

// LastEpoch is what the counter of key says: the last epoch that was handed
// out, 0 if none was. It waits for nobody; the next epoch may be on its way.
func (s *Store) LastEpoch(key string) (uint64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	n, err := readCounter(s.file(key, epochSuffix))
	if err != nil {
		return 0, fmt.Errorf("lease %q: %w", key, err)
	}
	return n, nil
}

// nextEpoch counts on; recorded is the epoch of the lease's record, 0 for none.
// Inside the critical section.
func (s *Store) nextEpoch(key string, recorded uint64) (uint64, error) {
	path := s.file(key, epochSuffix)
	last, err := readCounter(path)
	if err != nil {
		return 0, err
	}
	last = max(last, recorded)
	if last == math.MaxUint64 {
		return 0, ErrExhausted
	}
	next := last + 1
	if err := replaceFile(path, fmt.Appendf(nil, "%d\n", next)); err != nil {
		return 0, err
	}
	return next, nil
}

// readCounter is 0 if there is no file. What stands there and is no number, or
// may not be read, is never taken for 0.
func readCounter(path string) (uint64, error) {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		what := "is no file"
		if fi.IsDir() {
			what = "is a folder"
		}
		return 0, unreadable(path, what, nil)
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case errors.Is(err, fs.ErrPermission):
		return 0, unreadable(path, "may not be read", err)
	case err != nil:
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	digits, whole := bytes.CutSuffix(b, []byte{'\n'})
	n, perr := strconv.ParseUint(string(digits), 10, 64)
	if perr != nil || !whole || string(digits) != strconv.FormatUint(n, 10) {
		return 0, unreadable(path, fmt.Sprintf("reads %.40q", b), nil)
	}
	return n, nil
}

// unreadable is ErrUnreadable of a counter, and what to do; cause may be nil.
func unreadable(path, what string, cause error) error {
	causes := []any{path, ErrUnreadable, what}
	format := "counter %s is %w (it %s): write a decimal number and a newline into it, " +
		"not below any epoch that was ever used, else old epochs are handed out again"
	if cause != nil {
		format, causes = format+": %w", append(causes, cause)
	}
	return fmt.Errorf(format, causes...)
}
