package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// Options of a store. The zero value is usable.
type Options struct {
	// Role is written into every file; a folder that belongs to another role
	// is refused.
	Role string
	// PartBytes is the length at which a leader goes on in a new journal.
	// 0 means 64 MiB.
	PartBytes int64
	// KeepJournals and KeepBytes bound the journals before the current one:
	// beyond either, the leader writes a snapshot and removes them. 0 means 8
	// journals and 64 MiB.
	KeepJournals int
	KeepBytes    int64
	// Log gets a line now and then: a snapshot written, or one that failed.
	// nil means silence. It must be safe for concurrent use.
	Log func(format string, args ...any)

	disk disk
}

// Leadership is what a store needs of the leadership under which it is
// written; *coord.Leadership is one.
type Leadership interface {
	// Token is higher than that of every earlier leadership of the role.
	Token() role.Token
	// Check returns nil if, at some moment during the call, this leadership was
	// the active one.
	Check() error
}

// Store is one worker's view of the folder. Safe for concurrent use.
type Store struct {
	dir  string
	opts Options
	r    *replica
	turn chan struct{} // holds one token: whoever has it may use r
}

// Open prepares the folder dir, which is created if it does not exist, and
// reads nothing yet: see [Store.CatchUp].
func Open(dir string, o Options) (*Store, error) {
	if o.PartBytes == 0 {
		o.PartBytes = 64 << 20
	}
	if o.KeepJournals == 0 {
		o.KeepJournals = 8
	}
	if o.KeepBytes == 0 {
		o.KeepBytes = 64 << 20
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.disk.sync == nil {
		o.disk = realDisk
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	s := &Store{dir: dir, opts: o, r: newReplica(dir, o.Role), turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s, nil
}

// Close releases the files. Follow has returned and every Writer is closed.
func (s *Store) Close() error {
	s.r.close()
	return nil
}

// Position returns the place in the history that the state in memory stands for.
func (s *Store) Position() Position {
	s.r.mu.RLock()
	defer s.r.mu.RUnlock()
	return s.r.at
}

// Keys returns how many keys the state in memory has.
func (s *Store) Keys() int {
	s.r.mu.RLock()
	defer s.r.mu.RUnlock()
	return len(s.r.state)
}

// CatchUp reads everything that other workers have written so far. It waits
// while this worker leads.
func (s *Store) CatchUp(ctx context.Context) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	_, err := s.r.advance()
	return err
}

// Follow keeps the state in memory close behind what the leader writes, until
// ctx ends; then it returns nil. It rests while this worker leads. Any other
// return means that the store cannot be read: the worker should end.
func (s *Store) Follow(ctx context.Context) error {
	// A leader under load makes an event with each write: one pass reads many.
	const pause = 5 * time.Millisecond
	w := watch(s.dir)
	defer w.close()
	for {
		err := s.CatchUp(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
		case <-time.After(w.interval):
		}
	}
}

// Lead makes this worker the store's writer under l, which is valid already:
// it reads to the end of what counts, makes that durable, and opens a journal
// of its own. Without space for that journal it leads all the same, for reads
// only: writes get [ErrFull] until the journal could be opened, which is tried
// with each write and every second. It returns [ErrNotLeader] if l is over, [ErrAhead] or
// [ErrCorrupt] if the folder cannot be written under l. The caller closes the
// Writer before it gives the leadership up.
func (s *Store) Lead(ctx context.Context, l Leadership) (*Writer, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrNotLeader, ctx.Err())
	}
	w, err := s.lead(l)
	if err != nil {
		s.turn <- struct{}{}
		return nil, err
	}
	return w, nil
}

func (s *Store) lead(l Leadership) (*Writer, error) {
	found, err := s.r.advance()
	if err != nil {
		return nil, err
	}
	id := ID{Token: l.Token(), Part: 1}
	if newest := found.newest(); newest.Token >= id.Token {
		if err := l.Check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotLeader, err)
		}
		return nil, fmt.Errorf("%w: %s holds %s, but token %s leads now: was the supervisor's state folder removed? "+
			"Move the store's folder away, or put the state folder back", ErrAhead, s.dir, newest, id.Token)
	}
	if s.r.cur != nil {
		// Its writer may have died between write and fsync. What is read as
		// counted must not be lost with the machine.
		if err := s.opts.disk.sync(s.r.cur.f); err != nil {
			return nil, fmt.Errorf("make the journals before %s durable: %w", id, err)
		}
	}
	w := &Writer{
		s: s, l: l,
		requests: make(chan *request, 256),
		stop:     make(chan struct{}),
		ended:    make(chan struct{}),
		broken:   make(chan struct{}),
		kick:     make(chan struct{}, 1),
	}
	err = w.open(id, found)
	if outOfSpace(err) {
		w.tidy() // what dead leaders left unfinished may be all that is missing
		err = w.nextPart()
	}
	if outOfSpace(err) {
		// What the state in memory stands for is durable, and the journal that
		// is opened later counts exactly that.
		if err := l.Check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotLeader, err)
		}
		w.starve(err)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	w.done.Go(w.run)
	w.done.Go(w.compactor)
	return w, nil
}

// pollInterval is how often a folder is looked at that cannot be watched.
const pollInterval = 50 * time.Millisecond

// IsFatal says whether err, from any function of this package, needs a person
// to look at the files.
func IsFatal(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrAhead) || errors.Is(err, ErrRole)
}
