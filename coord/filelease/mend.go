package filelease

import (
	"context"
	"fmt"
	"os"
	"time"
)

// MendEpoch is RaiseEpoch for who knows every epoch of key that was handed
// out: n is the last one. A counter that is damaged, may not be read, or is no
// file is replaced, and what stood there kept as KEY.epoch.bad.
func (s *Store) MendEpoch(ctx context.Context, key string, n uint64) error {
	return s.critical(ctx, key, func(in section) error { return s.raise(in, key, n, true) })
}

// Mend writes the record of a lease anew that was damaged while it was held;
// the damaged one is kept as KEY.lease.json.bad. c describes the holder, as at
// the claim. The proof that it is held still is the lock on KEY.live: without
// it the error wraps ErrUnreadable. A record that is not damaged stays.
func (s *Store) Mend(ctx context.Context, l *Lease, c Claimant) error {
	return s.critical(ctx, l.key, func(in section) error {
		f, err := s.find(l.key)
		if err != nil || f.damaged == nil {
			return err
		}
		path, live := s.file(l.key, leaseSuffix), liveOf(l.claim)
		if live == nil || l.Err() != nil {
			return fmt.Errorf("%s is %w: %v", path, ErrUnreadable, f.damaged)
		}
		if same, err := leadsTo(s.file(l.key, liveSuffix), live); err != nil || !same {
			return fmt.Errorf("%s is %w: %v", path, ErrUnreadable, f.damaged)
		}
		if err := in.check(); err != nil {
			return err
		}
		if err := putAside(path, s.file(l.key, badSuffix)); err != nil {
			return fmt.Errorf("mend the lease: %w", err)
		}
		r := &record{
			Version: recordVersion, Key: l.key, Epoch: l.epoch, Claim: l.claim, Run: l.run, Block: &l.block, Pinned: l.pinned,
			SessionHint: c.SessionHint, Label: c.Label, Program: c.Version, Since: s.clock.Now().UTC().Truncate(time.Second),
			Live: fileNumber(live),
		}
		s.identify(r)
		stamp, err := s.write(r)
		if err == nil && !l.renewedAt(stamp) {
			err = l.Err()
		}
		return err
	})
}

// mostAside is how many earlier ones are kept of what has a damaged file's name.
const mostAside = 100

// putAside renames what is damaged to bad, over an earlier file of that name.
// What it cannot replace (a folder) gets a number: nothing is lost.
func putAside(path, bad string) error {
	err := os.Rename(path, bad)
	if err == nil || !exists(bad) {
		return err
	}
	for i := 1; i <= mostAside; i++ {
		if free := fmt.Sprintf("%s.%d", bad, i); !exists(free) {
			if err := os.Rename(bad, free); err != nil {
				return err
			}
			return os.Rename(path, bad)
		}
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
