package filelease

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// LiveHolderOtherThan tells who holds the lease, unless it is run or nobody;
// then it is nil. A holder that is neither expired nor provably dead lives; an
// unreadable record is one of an unknown holder, whose fields are all zero.
func (s *Store) LiveHolderOtherThan(ctx context.Context, key, run string) (*Holder, error) {
	var h *Holder
	err := s.critical(ctx, key, func(section) error {
		f, err := s.find(key)
		if err != nil || f.r != nil && run != "" && f.r.Run == run {
			return err
		}
		v, err := s.judge(key, f, false)
		if v.held != nil {
			h = &v.held.Holder
		}
		return err
	})
	return h, err
}

// Status is what is known about a key at one moment.
type Status struct {
	Key   string
	State State
	// Epoch is the last one that was handed out; 0 if none was, or if the
	// counter is unreadable.
	Epoch uint64
	// Holder is nil if there is no record; with a record that is unreadable, it
	// is an unknown one.
	Holder *Holder
	// Err says more about a lease that is held: why it is, when it ends.
	Err error
	// Leased: the key has, or had, a lease, and not a counter only.
	Leased bool
}

// Inspect tells all about a key, without changing anything.
func (s *Store) Inspect(ctx context.Context, key string) (Status, error) {
	st := Status{Key: key}
	err := s.critical(ctx, key, func(section) error {
		f, err := s.find(key)
		if err != nil {
			return err
		}
		if st.Epoch, err = readCounter(s.file(key, epochSuffix)); err != nil && !errors.Is(err, ErrUnreadable) {
			return err
		}
		st.Epoch = max(st.Epoch, f.epoch)
		_, err = os.Lstat(s.file(key, liveSuffix))
		st.Leased = !errors.Is(err, fs.ErrNotExist) || f.info != nil
		v, err := s.judge(key, f, false)
		if err != nil {
			return err
		}
		st.State = v.state
		switch {
		case v.held != nil:
			st.Holder, st.Err = &v.held.Holder, v.held
		case f.r != nil:
			h := f.r.holder()
			st.Holder = &h
		case f.info != nil:
			st.Holder = &Holder{}
		}
		return nil
	})
	return st, err
}
