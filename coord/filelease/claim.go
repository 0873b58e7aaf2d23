package filelease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// Claimant says who wants a lease. All fields may be empty.
type Claimant struct {
	// Run names one run of a process; empty means a random name that this
	// Store made. Block names a holder within it: two blocks exclude each other.
	Run, Block string
	// SessionHint, Label and Version are for the people who read who holds it.
	SessionHint string
	Label       string
	Version     string
}

// Lease is a lease that was granted. It is held until Release or the end of
// the process. Safe for concurrent use.
type Lease struct {
	key   string
	epoch uint64
	claim string
	live  *os.File // locked; Close ends the holder's sign of life
}

// Key is what was claimed.
func (l *Lease) Key() string { return l.key }

// Epoch is above that of every earlier lease of the key.
func (l *Lease) Epoch() uint64 { return l.epoch }

// Claim grants the lease of key if nobody holds it, or its holder is provably
// dead; else the error is a *HeldError that says who does. Held by the same
// run and block through this Store, it is granted again under the same epoch.
// It waits for the critical section until ctx ends, never for the holder.
func (s *Store) Claim(ctx context.Context, key string, c Claimant) (*Lease, error) {
	if c.Run == "" {
		c.Run = s.run
	}
	var lease *Lease
	err := s.critical(ctx, key, func() (err error) {
		lease, err = s.claim(ctx, key, c)
		return err
	})
	return lease, err
}

func (s *Store) claim(ctx context.Context, key string, c Claimant) (*Lease, error) {
	r, err := s.readRecord(key)
	if err != nil {
		return nil, err
	}
	if r != nil && r.Run == c.Run && r.Block == c.Block {
		if own := s.own(key); own != nil && own.claim == r.Claim {
			return own, nil
		}
	}
	live, err := s.displace(ctx, key, r)
	if err != nil {
		return nil, err
	}
	lease, err := s.grant(key, c, r, live)
	if err != nil {
		live.Close()
		return nil, err
	}
	return lease, nil
}

// grant puts the claimant on record. The counter comes first: an epoch that
// nobody got harms nobody.
func (s *Store) grant(key string, c Claimant, old *record, live *os.File) (*Lease, error) {
	fi, err := live.Stat()
	if err != nil {
		return nil, err
	}
	epoch, err := s.nextEpoch(key, old)
	if err != nil {
		return nil, err
	}
	r := &record{
		Version: recordVersion, Key: key, Epoch: epoch, Claim: randomID(), Run: c.Run, Block: c.Block,
		PID: s.self.PID, Start: s.self.Start, Boot: s.self.Boot, PIDNS: s.self.PIDNS,
		Host: s.host, Machine: s.machine, Live: fileNumber(fi),
		SessionHint: c.SessionHint, Label: c.Label, Program: c.Version, Since: time.Now().UTC().Truncate(time.Second),
	}
	if err := s.writeRecord(r); err != nil {
		return nil, err
	}
	lease := &Lease{key: key, epoch: epoch, claim: r.Claim, live: live}
	s.mu.Lock()
	s.leases[key] = lease
	s.mu.Unlock()
	return lease, nil
}

func (s *Store) own(key string) *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[key]
}

// displace proves that nobody holds the lease any more, and returns KEY.live
// locked. Inside the critical section, so that two claimants cannot find the
// same holder dead.
func (s *Store) displace(ctx context.Context, key string, r *record) (*os.File, error) {
	path := s.file(key, liveSuffix)
	live, err := tryAcquire(path)
	busy := errors.Is(err, errBusy)
	if err != nil && !busy {
		return nil, err
	}
	switch {
	case !busy && (r == nil || s.silent(r, live) || s.dead(r)):
		return live, nil
	case !busy:
		live.Close()
		return nil, &HeldError{Key: key, Holder: r.holder(), Why: s.whyUnknown(r)}
	case r == nil:
		return nil, &HeldError{Key: key, Why: "its record is missing, but " + path + " is locked"}
	case !s.dead(r):
		return nil, &HeldError{Key: key, Holder: r.holder()}
	}
	// Dead, and yet its lock is held: by a process that it was forking when it
	// died, for a moment; or by one that inherited the descriptor.
	ctx, cancel := context.WithTimeout(ctx, inheritedLimit)
	defer cancel()
	live, err = acquire(ctx, path)
	if errors.Is(err, errBusy) {
		return nil, &HeldError{Key: key, Holder: r.holder(), Why: "it is dead, but a process that it started holds " + path}
	}
	return live, err
}

const inheritedLimit = time.Second

// silent: the holder locked this very file on this kernel, and its lock is gone.
func (s *Store) silent(r *record, live *os.File) bool {
	if r.Boot == 0 || r.Boot != s.self.Boot {
		return false
	}
	fi, err := live.Stat()
	return err == nil && (r.Live == fileNumber(fi) && r.Live != 0 || !numbered)
}

// dead: its process is provably gone, by what it recorded.
func (s *Store) dead(r *record) bool {
	if r.Boot != 0 && r.Boot != s.self.Boot && !s.sameMachine(r) {
		return false
	}
	return r.PID != 0 && r.Boot != 0 && proc.Judge(r.identity()) == proc.Gone
}

// sameMachine: a local file system has one machine, which has then booted since.
func (s *Store) sameMachine(r *record) bool {
	return !s.network || r.Machine != "" && r.Machine == s.machine
}

func (s *Store) whyUnknown(r *record) string {
	switch {
	case r.Boot != s.self.Boot:
		return "it is on another machine, which cannot be seen from here"
	case r.PIDNS != s.self.PIDNS:
		return "its lock file was replaced, and it is in another pid namespace"
	}
	return "its lock file was replaced, but its process lives"
}

// Verify is ErrLost or a *HeldError if the lease is no longer the caller's. Call
// it before acting on what the lease protects.
func (s *Store) Verify(ctx context.Context, l *Lease) error {
	return s.critical(ctx, l.key, func() error {
		r, err := s.readRecord(l.key)
		switch {
		case err != nil:
			return err
		case r == nil:
			return ErrLost
		case r.Claim != l.claim:
			return &HeldError{Key: l.key, Holder: r.holder()}
		}
		if same, err := leadsTo(s.file(l.key, liveSuffix), l.live); err != nil || !same {
			return fmt.Errorf("%w: %s was deleted or replaced", ErrLost, s.file(l.key, liveSuffix))
		}
		return nil
	})
}

// Release gives the lease back. If it is no longer the caller's, nothing
// happens. The counter stays.
func (s *Store) Release(ctx context.Context, l *Lease) error {
	err := s.critical(ctx, l.key, func() error {
		r, err := s.readRecord(l.key)
		if err != nil || r == nil || r.Claim != l.claim {
			return err
		}
		return removeFile(s.file(l.key, leaseSuffix))
	})
	s.mu.Lock()
	if s.leases[l.key] == l {
		delete(s.leases, l.key)
	}
	s.mu.Unlock()
	l.live.Close() // a second time after a second Release: no harm
	return err
}

// LiveHolderOtherThan tells who holds the lease, unless it is run or nobody;
// then it is nil. A holder whose death cannot be proven lives.
func (s *Store) LiveHolderOtherThan(ctx context.Context, key, run string) (*Holder, error) {
	var h *Holder
	err := s.critical(ctx, key, func() error {
		r, err := s.readRecord(key)
		if err != nil || r != nil && run != "" && r.Run == run {
			return err
		}
		live, err := s.displace(ctx, key, r)
		var held *HeldError
		if errors.As(err, &held) {
			h = &held.Holder
			return nil
		}
		if err == nil {
			live.Close()
		}
		return err
	})
	return h, err
}
