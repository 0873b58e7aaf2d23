package lease

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
)

// DefaultGrace is how many epochs an owner may be behind where nobody says
// otherwise.
const DefaultGrace = election.DefaultGrace

// OwnerLease is one handle on a lease with a payload of type T, in a file that
// any number of processes open. All its methods are safe for concurrent use,
// except that none may be called after Close.
//
// It has two styles. Acquire waits and returns a [Claim], which knows its term
// and is strict about it: for programs. The classic verbs name a pid, make one
// attempt and decide by the words of the segment alone; they neither wait, nor
// look at other processes, nor allocate. The pid need not be a process's own,
// but two processes must not act under the same one.
type OwnerLease[T any] struct {
	view View[T]
	e    *election.Election
	seg  *shm.Segment
	with scratch[T]
	// mine is the owner word under which the handle acted last: a cache of
	// what the election remembers. A term that was given up never comes back,
	// so an old word matches nothing; nor does what it holds at first, the last
	// term of the last pid, so that it names nobody's pid 0.
	mine shm.LocalWord

	turn    chan struct{} // holds the one Acquire or claim of this handle
	keeper  atomic.Pointer[keeper]
	closing chan struct{}
	once    sync.Once
	known   *registered
}

// Create makes a segment with the payload initial at path, and opens it.
// ErrExists if the path exists: it stays as it was. ErrPayload if T cannot be
// shared. The file appears whole or not at all, with its blocks allocated.
func Create[T any](path string, initial T, opts ...Option) (*OwnerLease[T], error) {
	size, err := sizeOf[T]()
	if err != nil {
		return nil, err
	}
	p := shm.DefaultParams()
	for _, o := range opts {
		o(&p)
	}
	p.Cell, p.PayloadType = max(size, shm.DefaultCell), size
	seg, err := shm.Create(path, p, func(s *shm.Segment) error {
		// The commit word of a new segment names cell 0 of slot 0. Whoever
		// takes that slot writes cell 1 first.
		shm.StoreValue(shm.CellOf(s.Writers[0].Cells[0]), &initial)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return handle[T](seg)
}

// Open opens the lease at path and changes nothing in it. The errors are
// ErrPayload, if its payload is not of T's size, and those of shm.Open.
func Open[T any](path string, _ ...Option) (*OwnerLease[T], error) {
	if _, err := sizeOf[T](); err != nil {
		return nil, err
	}
	seg, err := shm.Open(path)
	if err != nil {
		return nil, err
	}
	return handle[T](seg)
}

// OpenOrCreate opens path, and creates it if it does not exist. Of several
// processes that do this at once one creates, the others open.
func OpenOrCreate[T any](path string, initial T, opts ...Option) (*OwnerLease[T], error) {
	for range 100 {
		l, err := Open[T](path)
		if !errors.Is(err, fs.ErrNotExist) {
			return l, err
		}
		if l, err = Create(path, initial, opts...); !errors.Is(err, ErrExists) {
			return l, err
		}
	}
	return Open[T](path)
}

// handle makes the handle of a segment that is its own from now on.
func handle[T any](seg *shm.Segment) (*OwnerLease[T], error) {
	v, err := Attach[T](seg)
	if err != nil {
		seg.Close()
		return nil, err
	}
	e := election.Attach(seg)
	l := &OwnerLease[T]{view: *v, e: e, seg: seg, turn: make(chan struct{}, 1), closing: make(chan struct{}),
		known: register(v.p, e, reflect.TypeFor[T]().String())}
	l.mine.Store(shm.PackOwner(shm.MaxPID, shm.MaxTerm))
	return l, nil
}

// View is the payload for those who read.
func (l *OwnerLease[T]) View() *View[T] { return &l.view }

// Election is the lease without its payload: the strict verbs, the ring.
func (l *OwnerLease[T]) Election() *election.Election { return l.e }

// Path is where the lease was created or opened.
func (l *OwnerLease[T]) Path() string { return l.seg.Path() }

// Flush writes the segment to its file system and waits; FlushAsync does not
// wait. Neither is needed for other processes to see the values, nor for a
// value to survive the death of its writer.
func (l *OwnerLease[T]) Flush() error      { return l.seg.Flush() }
func (l *OwnerLease[T]) FlushAsync() error { return l.seg.FlushAsync() }

// Close ends an Acquire that waits, releases the handle's claim, gives back its
// writer slot, and unmaps the segment: no other method may be running or
// follow, nor one of its claims and views. A lease that the classic verbs still
// own stays owned, and a handle that is opened again by the same process goes
// on with it. A second Close does nothing.
func (l *OwnerLease[T]) Close() error {
	var err error
	l.once.Do(func() {
		close(l.closing)
		for out := false; !out; {
			if k := l.keeper.Load(); k != nil {
				_ = k.release(context.Background())
			}
			select {
			case l.turn <- struct{}{}:
				out = true
			case <-time.After(time.Millisecond): // an Acquire is on its way out, or just won
			}
		}
		l.view.p.Close()
		l.known.forget()
		err = l.seg.Close()
	})
	return err
}
