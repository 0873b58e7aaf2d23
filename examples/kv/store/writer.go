package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Bounds of one group of writes that share a write and an fsync.
const (
	maxBatch      = 256
	maxBatchBytes = 4 << 20
)

// reopenEvery is how often a leader without a journal tries to open one.
const reopenEvery = time.Second

// Writer is the store under one leadership. Its methods are safe for
// concurrent use.
type Writer struct {
	s *Store
	l Leadership

	requests chan *request
	stop     chan struct{} // closed by Close
	ended    chan struct{} // closed when nothing is committed any more
	broken   chan struct{} // closed when the journal cannot be written any more
	err      error         // why; read it after broken is closed
	kick     chan struct{} // the compactor should look
	once     sync.Once
	done     sync.WaitGroup

	// Only the committing goroutine uses what follows, and open before it.
	f      *os.File // nil while this leader has no journal: see Store.Lead
	id     ID
	salt   uint64
	offset int64 // of the journal's durable end; everything before it is confirmed
	buf    []byte

	full bool // the journal ends in a write that failed for want of space, or there is none

	mu       sync.Mutex
	lapse    error // of the last attempt to write a snapshot
	readOnly error // why writes are refused for now
}

type request struct {
	op    byte
	key   string
	value []byte
	reply chan error // buffered
}

// Status describes a Writer's journal for people.
type Status struct {
	Keys       int    `json:"keys"`
	Sequence   uint64 `json:"sequence"` // of the last confirmed record
	File       string `json:"file"`
	Bytes      int64  `json:"bytes"`
	Older      int    `json:"older"` // journals before it that still exist
	OlderBytes int64  `json:"older_bytes"`
	Snapshot   string `json:"snapshot,omitempty"`
	Error      string `json:"error,omitempty"`     // of the last attempt to write a snapshot
	ReadOnly   string `json:"read_only,omitempty"` // why writes are refused until there is space
}

// Put stores value, which nobody changes from then on, under key. It returns nil only if the write is durable and
// this leadership was still valid after that. Anything else is [ErrLimit],
// [ErrFull] or [ErrNotLeader], after which nothing was written, or [ErrUnconfirmed]. ctx
// bounds the wait for a place in the queue and for the result.
func (w *Writer) Put(ctx context.Context, key string, value []byte) error {
	if key == "" || len(key) > MaxKey || len(value) > MaxValue {
		return fmt.Errorf("%w: key of %d bytes (1 to %d), value of %d (0 to %d)", ErrLimit, len(key), MaxKey, len(value), MaxValue)
	}
	return w.do(ctx, opPut, key, value)
}

// Delete removes key; a key that does not exist is no error. Results are as for Put.
func (w *Writer) Delete(ctx context.Context, key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("%w: key of %d bytes (1 to %d)", ErrLimit, len(key), MaxKey)
	}
	return w.do(ctx, opDelete, key, nil)
}

// Get returns the value of key, which the caller must not change, and whether
// there is one. It returns [ErrNotLeader] if the answer might be out of date.
func (w *Writer) Get(key string) ([]byte, bool, error) {
	w.s.r.mu.RLock()
	value, ok := w.s.r.state[key]
	w.s.r.mu.RUnlock()
	if err := w.l.Check(); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	return value, ok, nil
}

// Broken is closed when the writer has given up: the journal could not be
// written, or the leadership was found to be over. Err says why.
func (w *Writer) Broken() <-chan struct{} { return w.broken }

// Err returns nil until Broken is closed.
func (w *Writer) Err() error {
	select {
	case <-w.broken:
		return w.err
	default:
		return nil
	}
}

// Status returns the journal's state.
func (w *Writer) Status() Status {
	at := w.s.Position()
	st := Status{Keys: w.s.Keys(), Sequence: at.Seq, File: at.ID.String(), Bytes: at.Offset}
	if l, err := list(w.s.dir); err == nil {
		st.Older, st.OlderBytes = l.older(w.s.dir)
		if n := len(l.snapshots); n > 0 {
			last := l.snapshots[n-1]
			st.Snapshot = snapshotName(Position{ID: last.id, Offset: last.offset})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lapse != nil {
		st.Error = w.lapse.Error()
	}
	if w.readOnly != nil {
		st.ReadOnly = w.readOnly.Error()
	}
	return st
}

// Close answers every write that was accepted and lets go of the store. After
// it the Store follows again.
func (w *Writer) Close() error {
	w.once.Do(func() {
		close(w.stop)
		w.done.Wait()
		if w.f != nil {
			w.f.Close()
		}
		w.s.turn <- struct{}{}
	})
	return nil
}

func (w *Writer) do(ctx context.Context, op byte, key string, value []byte) error {
	q := &request{op: op, key: key, value: value, reply: make(chan error, 1)}
	select {
	case <-w.broken:
		return fmt.Errorf("%w: %w", ErrNotLeader, w.err)
	case <-w.stop:
		return fmt.Errorf("%w: it is being handed over", ErrNotLeader)
	default:
	}
	select {
	case w.requests <- q:
	case <-w.broken:
		return fmt.Errorf("%w: %w", ErrNotLeader, w.err)
	case <-w.stop:
		return fmt.Errorf("%w: it is being handed over", ErrNotLeader)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotLeader, ctx.Err())
	}
	select {
	case err := <-q.reply:
		return err
	case <-w.ended:
		select {
		case err := <-q.reply:
			return err
		default:
			return fmt.Errorf("%w: it was handed over", ErrNotLeader) // queued too late
		}
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnconfirmed, ctx.Err())
	}
}

// run commits one group after the other: while one is being synced, the next
// gathers in the queue.
func (w *Writer) run() {
	defer close(w.ended)
	var again <-chan time.Time
	if w.f == nil {
		tick := time.NewTicker(reopenEvery)
		defer tick.Stop()
		again = tick.C
	}
	for {
		select {
		case q := <-w.requests:
			w.commit(w.gather(q))
		case <-again:
			if w.f != nil || w.Err() != nil || w.resume() == nil {
				again = nil
			}
		case <-w.stop:
			for {
				select {
				case q := <-w.requests:
					w.commit(w.gather(q))
				default:
					return
				}
			}
		}
	}
}

func (w *Writer) gather(first *request) []*request {
	batch, size := []*request{first}, len(first.value)
	for len(batch) < maxBatch && size < maxBatchBytes {
		select {
		case q := <-w.requests:
			batch, size = append(batch, q), size+len(q.value)
		default:
			return batch
		}
	}
	return batch
}

// commit writes a group, makes it durable, checks, and only then lets readers
// see it and answers.
func (w *Writer) commit(batch []*request) {
	records, err := w.write(batch)
	if err == nil {
		end := w.offset
		for _, r := range records {
			end += r.size()
			w.s.r.apply(end, r)
		}
		w.offset = end
	}
	for _, q := range batch {
		q.reply <- err
	}
	if err == nil && w.offset >= w.s.opts.PartBytes {
		if err := w.nextPart(); outOfSpace(err) {
			w.starve(err)
		} else if err != nil {
			w.fail(err)
		}
	}
}

func (w *Writer) write(batch []*request) ([]record, error) {
	if err := w.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	if err := w.l.Check(); err != nil {
		w.fail(err)
		return nil, fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	if w.full {
		if err := w.resume(); err != nil {
			return nil, err
		}
	}
	at := w.s.Position()
	records := make([]record, 0, len(batch))
	exists := map[string]bool{} // as changed within the group
	w.buf = w.buf[:0]
	for _, q := range batch {
		if q.op == opDelete {
			there, ok := exists[q.key]
			if !ok {
				_, there = w.s.r.state[q.key] // no other goroutine writes it now
			}
			if !there {
				continue
			}
		}
		exists[q.key] = q.op == opPut
		r := record{op: q.op, token: w.id.Token, seq: at.Seq + uint64(len(records)) + 1, durable: w.offset, key: q.key, value: q.value}
		records = append(records, r)
		w.buf = appendRecord(w.buf, w.salt, w.offset+int64(len(w.buf)), r)
	}
	if len(records) > 0 {
		_, err := w.s.opts.disk.writeAt(w.f, w.buf, w.offset)
		if err == nil {
			// What the kernel drops when this fails cannot be known, and a
			// second fsync would report success: the journal is over.
			err = w.s.opts.disk.sync(w.f)
		}
		if outOfSpace(err) {
			w.starve(err)
		} else if err != nil {
			w.fail(err)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: write the journal: %w", ErrUnconfirmed, err)
		}
	}
	if err := w.l.Check(); err != nil {
		w.fail(err)
		return nil, fmt.Errorf("%w: the leadership ended before the write was confirmed: %w", ErrUnconfirmed, err)
	}
	return records, nil
}

// starve notes that nothing can be written for want of space.
func (w *Writer) starve(err error) {
	if !w.full {
		w.s.opts.Log("token %s: no space in %s: reads go on, writes are refused until there is some: %v", w.l.Token(), w.s.dir, err)
	}
	w.full = true
	w.mu.Lock()
	w.readOnly = err
	w.mu.Unlock()
}

// resume begins a new journal, if there is space for it by now. That one counts
// the one before up to what was confirmed, and so settles what became of a
// write that failed.
func (w *Writer) resume() error {
	err := w.l.Check()
	if err == nil {
		err = w.nextPart()
	}
	switch {
	case outOfSpace(err):
		w.starve(err)
		return fmt.Errorf("%w: %w", ErrFull, err)
	case err != nil:
		w.fail(err)
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	w.full = false
	w.mu.Lock()
	w.readOnly = nil
	w.mu.Unlock()
	w.s.opts.Log("token %s: there is space again: writes go on, in %s", w.l.Token(), w.id)
	return nil
}

func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// fail makes the writer give up. Only the committing goroutine calls it.
func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = fmt.Errorf("write the store under token %s: %w", w.l.Token(), err)
		close(w.broken)
	}
}

// nextPart goes on in a new journal of the same leadership, or begins its
// first one.
func (w *Writer) nextPart() error {
	found, err := list(w.s.dir)
	if err != nil {
		return err
	}
	next := ID{Token: w.l.Token(), Part: 1}
	switch newest := found.newest(); {
	case newest.Token > next.Token:
		// A later leader is at work; its check would have told us next time.
		return fmt.Errorf("%w: %s exists", ErrNotLeader, newest)
	case newest.Token == next.Token:
		// It is ours, or an attempt of ours that failed when its name was in
		// place already: no record was ever written to that one.
		next.Part = newest.Part + 1
	case w.f != nil:
		return fmt.Errorf("%w: %s is gone", ErrCorrupt, w.id)
	}
	old := w.f
	if err := w.open(next, found); err != nil {
		return err
	}
	if old != nil {
		old.Close() // everything in it that counts is durable
	}
	return nil
}

// open begins the journal id, after everything that the replica stands for.
// found is the listing that the replica was advanced by.
func (w *Writer) open(id ID, found listing) error {
	r := w.s.r
	m := manifest{ID: id, Role: w.s.opts.Role, Salt: newSalt(), At: time.Now().UTC(), Counted: []counted{}}
	if r.cur != nil {
		past := &r.cur.manifest
		m.Base = past.Base
		from := ID{}
		if s, ok := past.base(found); ok {
			_, at, err := readSnapshotHeader(w.s.dir, s)
			if err != nil {
				return err
			}
			m.Base = &at
		}
		if m.Base != nil {
			from = m.Base.ID
		}
		for _, c := range append(past.Counted, counted{ID: r.at.ID, Length: r.at.Offset, Seq: r.at.Seq}) {
			if c.ID.Compare(from) >= 0 {
				m.Counted = append(m.Counted, c)
			}
		}
	}
	head, err := encodeHeader(journalMagic, m)
	if err != nil {
		return fmt.Errorf("begin %s: %w", id, err)
	}
	f, err := os.CreateTemp(w.s.dir, fmt.Sprintf(".%s-*%s", id, tempSuffix))
	if err != nil {
		return fmt.Errorf("begin %s: %w", id, err)
	}
	if _, err = w.s.opts.disk.writeAt(f, head, 0); err == nil {
		err = w.s.opts.disk.publish(w.s.dir, f, id.String())
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return fmt.Errorf("begin %s: %w", id, err)
	}
	// The check follows the journal's appearance: a later leader, which looks
	// only once it is the active one, finds it.
	if err := w.l.Check(); err != nil {
		f.Close()
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	j, err := openJournal(w.s.dir, id)
	if err != nil {
		f.Close()
		return err
	}
	r.enter(j)
	w.f, w.id, w.salt, w.offset = f, id, m.Salt, j.begin
	select {
	case w.kick <- struct{}{}:
	default:
	}
	return nil
}
