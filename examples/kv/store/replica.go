package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// replica is the state in memory and the place in the history that it stands
// for. One goroutine at a time advances it; state may be read by others under mu.
type replica struct {
	dir  string
	role string

	mu    sync.RWMutex
	state map[string][]byte // values are never changed in place
	at    Position          // zero ID: the state is empty

	cur *journal // that of at.ID, nil if at is zero or comes from a snapshot
}

func newReplica(dir, role string) *replica {
	return &replica{dir: dir, role: role, state: map[string][]byte{}}
}

func (r *replica) close() {
	if r.cur != nil {
		r.cur.close()
		r.cur = nil
	}
}

// advance brings the replica to the end of what can be read now and returns
// the listing that decided. A reader that finds a file gone that a newer
// snapshot has replaced starts over.
func (r *replica) advance() (listing, error) {
	for try := 0; ; try++ {
		l, err := list(r.dir)
		if err != nil {
			return l, err
		}
		err = r.follow(l)
		switch {
		case err == nil:
			// A newer journal may have ended the one just read meanwhile.
			again, err := list(r.dir)
			if err != nil {
				return l, err
			}
			if again.newest() == l.newest() {
				return l, nil
			}
		case errors.Is(err, fs.ErrNotExist):
			if try >= 100 {
				return l, fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
			again, lerr := list(r.dir)
			if lerr != nil {
				return l, lerr
			}
			if again.newest() == l.newest() && slices.Equal(again.snapshots, l.snapshots) && slices.Equal(again.journals, l.journals) {
				return l, fmt.Errorf("%w: %w", ErrCorrupt, err)
			}
		default:
			return l, err
		}
	}
}

// follow moves the replica along the history that the newest journal of l decides.
func (r *replica) follow(l listing) error {
	newest := l.newest()
	if newest.isZero() {
		if len(l.snapshots) > 0 || !r.at.ID.isZero() {
			return fmt.Errorf("%w: %s: there is no journal", ErrCorrupt, r.dir)
		}
		return nil
	}
	if r.cur != nil && r.at.ID == newest {
		return r.replay(r.cur, -1)
	}
	last, err := openJournal(r.dir, newest)
	if err != nil {
		return err
	}
	m := &last.manifest
	if m.Role != r.role {
		last.close()
		return fmt.Errorf("%w: %s is of role %q, not %q", ErrRole, last.f.Name(), m.Role, r.role)
	}
	if !r.onChain(l, m) {
		if err := r.rebuild(l, m); err != nil {
			last.close()
			return err
		}
	}
	for _, c := range m.Counted {
		if c.ID.Compare(r.at.ID) < 0 {
			continue
		}
		if err := r.replayCounted(m, c); err != nil {
			last.close()
			return err
		}
	}
	if r.at.ID != newest && r.at.Seq != m.start() {
		last.close()
		return fmt.Errorf("%w: %s continues after record %d, but the older journals end with %d", ErrCorrupt, last.f.Name(), m.start(), r.at.Seq)
	}
	r.enter(last)
	return r.replay(last, -1)
}

// onChain says whether everything in the replica counts under m, and whether
// the journals that follow it are all there.
func (r *replica) onChain(l listing, m *manifest) bool {
	if r.cur == nil {
		return false
	}
	c, ok := m.count(r.at.ID)
	if !ok || r.at.Offset > c.Length {
		return false
	}
	for _, c := range m.Counted {
		if c.ID.Compare(r.at.ID) > 0 && !slices.Contains(l.journals, c.ID) {
			return false
		}
	}
	return true
}

// base returns the newest snapshot that stands for a place in m's history.
func (m *manifest) base(l listing) (place, bool) {
	for _, s := range slices.Backward(l.snapshots) {
		c, ok := m.count(s.id)
		if s.id == m.ID || ok && s.offset <= c.Length {
			return s, true
		}
	}
	return place{}, false
}

// rebuild starts again from the newest snapshot that counts under m, or from nothing.
func (r *replica) rebuild(l listing, m *manifest) error {
	var state map[string][]byte
	var at Position
	if s, ok := m.base(l); ok {
		var err error
		if state, at, err = loadSnapshot(r.dir, s, r.role); err != nil {
			return err
		}
	} else if m.Base != nil {
		return fmt.Errorf("%s needs the snapshot of %s: %w", m.ID, m.Base, fs.ErrNotExist)
	} else {
		state = map[string][]byte{}
	}
	r.close()
	r.mu.Lock()
	r.state, r.at = state, at
	r.mu.Unlock()
	return nil
}

// replayCounted applies the rest of one journal of m's list, to the byte.
func (r *replica) replayCounted(m *manifest, c counted) error {
	j := r.cur
	if j == nil || r.at.ID != c.ID {
		var err error
		if j, err = openJournal(r.dir, c.ID); err != nil {
			return err
		}
		if err := m.continues(&j.manifest); err != nil {
			j.close()
			return err
		}
		if r.at.ID != c.ID && r.at.Seq != j.manifest.start() {
			j.close()
			return fmt.Errorf("%w: %s continues after record %d, but the older journals end with %d", ErrCorrupt, j.f.Name(), j.manifest.start(), r.at.Seq)
		}
		r.enter(j)
	}
	if err := r.replay(j, c.Length); err != nil {
		return err
	}
	if r.at.Seq != c.Seq {
		return fmt.Errorf("%w: %s ends with record %d at byte %d, but %s counts up to record %d", ErrCorrupt, j.f.Name(), r.at.Seq, c.Length, m.ID, c.Seq)
	}
	return nil
}

// enter makes j the current journal. If the replica does not stand inside it
// already, it stands at its first record.
func (r *replica) enter(j *journal) {
	if r.cur != nil && r.cur != j {
		r.cur.close()
	}
	r.cur = j
	if id := j.manifest.ID; r.at.ID != id {
		r.mu.Lock()
		r.at.ID, r.at.Offset = id, j.begin
		r.mu.Unlock()
	}
}

// replay applies records of j from where the replica stands: up to limit
// exactly, or, if limit is negative, as far as there are whole records.
func (r *replica) replay(j *journal, limit int64) error {
	j.forget()
	for limit < 0 || r.at.Offset < limit {
		rec, err := j.next(r.at.Offset)
		if err != nil && !errors.Is(err, errShort) && !errors.Is(err, errBad) {
			return err
		}
		if err != nil && limit >= 0 {
			return fmt.Errorf("%w: %s: at byte %d of %d that count: %w", ErrCorrupt, j.f.Name(), r.at.Offset, limit, err)
		}
		if err != nil {
			// Whoever writes may have finished this record since: a witness
			// against it counts only if it is still unreadable afterwards.
			damage := j.unfinished(r.at.Offset, err)
			if damage == nil {
				return nil
			}
			j.forget()
			if rec, err = j.next(r.at.Offset); err != nil {
				return damage
			}
		}
		end := r.at.Offset + rec.size()
		if limit >= 0 && end > limit {
			return fmt.Errorf("%w: %s: the record at byte %d ends beyond the %d that count", ErrCorrupt, j.f.Name(), r.at.Offset, limit)
		}
		if rec.seq != r.at.Seq+1 || rec.token != j.manifest.ID.Token || rec.op == opEnd {
			return fmt.Errorf("%w: %s: the record at byte %d is number %d of token %s, want %d of %s", ErrCorrupt, j.f.Name(), r.at.Offset,
				rec.seq, rec.token, r.at.Seq+1, j.manifest.ID.Token)
		}
		rec.value = append([]byte(nil), rec.value...)
		r.apply(end, rec)
	}
	return nil
}

// apply changes the state by one record that ends at end of the current journal.
func (r *replica) apply(end int64, rec record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch rec.op {
	case opPut:
		r.state[rec.key] = rec.value
	case opDelete:
		delete(r.state, rec.key)
	}
	r.at.Offset, r.at.Seq = end, rec.seq
}

// freeze returns the state and its place; values are shared, and never change.
func (r *replica) freeze() (map[string][]byte, Position) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.state), r.at
}

// older returns the journals before the newest, with their sizes together.
func (l listing) older(dir string) (n int, size int64) {
	for _, id := range l.journals[:max(0, len(l.journals)-1)] {
		if info, err := os.Stat(filepath.Join(dir, id.String())); err == nil {
			n, size = n+1, size+info.Size()
		}
	}
	return n, size
}
