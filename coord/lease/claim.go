package lease

import (
	"context"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

// Held is a term that was claimed and activated, as a [Claim] rests on it.
// Whoever makes one beats for it, and closes Done when it is lost.
type Held struct {
	PID  uint32
	Term uint64
	// Done is closed when the term is known to be over.
	Done <-chan struct{}
	// Release gives the lease back; nil releases by the segment's words alone,
	// the active word first.
	Release func(context.Context) error
}

// Claim is one term of ownership. It is strict: every operation is that of its
// term alone, and fails for good when the term is over, also if the same
// process owns a later one. Safe for concurrent use.
type Claim[T any] struct {
	view  View[T]
	e     *election.Election
	owner uint64 // the owner word of the term
	held  Held
}

// ClaimOf makes the claim of a term that the caller has won and activated, for
// example by coord. The errors are those of [ViewOf].
func ClaimOf[T any](p *Payload, h Held) (*Claim[T], error) {
	v, err := ViewOf[T](p)
	if err != nil {
		return nil, err
	}
	return claimOf(*v, h), nil
}

func claimOf[T any](v View[T], h Held) *Claim[T] {
	return &Claim[T]{view: v, e: election.Attach(v.p.seg), owner: shm.PackOwner(h.PID, h.Term), held: h}
}

// Read returns the value; ErrLost if the term is over.
func (c *Claim[T]) Read() (v T, err error) {
	p := c.view.p
	h := p.hot
	pause(pointReadCommit)
	w := h.Commit.Load()
	if cell := p.cells[w&cellBits>>32]; shm.PlainLoads && cell.Exists() {
		pause(pointReadCell)
		v = *shm.InPlace[T](cell)
		pause(pointReadAgain)
		if h.Commit.Load() == w {
			// Loaded after the value: see ReadAsOwner.
			pause(pointReadOwner)
			if h.Owner.Load() == c.owner {
				return v, nil
			}
		}
	}
	return c.read()
}

// read is Read, from the beginning.
func (c *Claim[T]) read() (v T, err error) {
	if _, err = load(c.view.p, &v); err != nil {
		return v, err
	}
	pause(pointReadOwner)
	if c.view.p.hot.Owner.Load() != c.owner {
		var zero T
		return zero, ErrLost
	}
	return v, nil
}

// Write publishes v as a whole: whoever reads sees the value before or all of
// v, and whoever owns the lease next goes on from v. ErrLost if the term is
// over; then nothing was published. The first write of a handle takes a writer
// slot, which can fail with ErrNoWriterSlot.
func (c *Claim[T]) Write(v T) error { return lost(write(c.view.p, c.owner, &v)) }

// Beat says that the owner lives; ErrLost if it was taken from or found stale.
// In an epoch that was beaten already it writes nothing.
func (c *Claim[T]) Beat() error {
	if c.e.Beaten(c.owner) {
		return nil
	}
	return c.e.Beat(c.held.PID, c.held.Term)
}

// Check says whether the claim owns the lease and may act, now: nil or
// ErrFenced. It costs two loads: call it before each side effect, and hand the
// token on to whatever can compare tokens, for a process may stop between a
// Check and what follows it.
func (c *Claim[T]) Check() error { return c.e.Check(c.held.PID, c.held.Term) }

// Token is the fencing token: of two claims the later one has the higher token.
func (c *Claim[T]) Token() uint64 { return uint64(c.RoleToken()) }

// RoleToken is Token in its own type.
func (c *Claim[T]) RoleToken() role.Token { return c.e.TokenOf(c.held.Term) }

// Term is the claim's term; PID the pid that it is held under.
func (c *Claim[T]) Term() uint64 { return c.held.Term }
func (c *Claim[T]) PID() uint32  { return c.held.PID }

// Done is closed when the claim is known to be lost. Whoever sees it stops its
// work and then calls Release: a successor may be waiting for that. Release
// itself does not close it.
func (c *Claim[T]) Done() <-chan struct{} { return c.held.Done }

// View is the payload for those who read.
func (c *Claim[T]) View() *View[T] { return &c.view }

// Release says that the work has stopped, and gives the lease back. ErrLost if
// it was lost before: that is how late a program learns it that never looked.
// A second Release returns what the first one did. ctx bounds the waiting, if
// there is anything to wait for.
func (c *Claim[T]) Release(ctx context.Context) error {
	if c.held.Release != nil {
		return c.held.Release(ctx)
	}
	return giveBack(c.e, c.held.PID, c.held.Term)
}

// giveBack takes a term out of the active word, then out of the owner word.
func giveBack(e *election.Election, pid uint32, term uint64) error {
	_ = e.Retire(pid, term) // ErrFenced: another has been active since
	return lost(e.Release(pid, term))
}

// lost is the claim's word for what the classic verbs call "not the owner".
func lost(err error) error {
	if err == ErrNotOwner {
		return ErrLost
	}
	return err
}
