package election

import (
	"sync"
	"sync/atomic"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

// DefaultGrace is how many epochs an owner may be behind where nobody says
// otherwise.
const DefaultGrace = 3

// Election is one handle on the ownership of a segment. Its methods are safe
// for concurrent use and, the blocking ones aside, wait-free but for retries
// against other members' progress.
type Election struct {
	seg *shm.Segment
	hot *shm.HotWords // of seg, for the paths that are to be fast
	// owned keeps Close from unmapping a segment that somebody else opened.
	owned bool
	// payload: a claim adopts the commit word.
	payload bool

	// The classic verbs name a pid only; the handle remembers the term that
	// it won for that pid. One pid is the common case and fits in a word.
	remembered shm.LocalWord // (pid, term); 0 none
	first      atomic.Uint32 // the only pid that remembered ever names
	hasOthers  atomic.Bool
	mu         sync.Mutex
	others     map[uint32]uint64

	count counters
}

// Attach makes a handle on a segment that the caller has opened and will close.
func Attach(seg *shm.Segment) *Election {
	return &Election{seg: seg, hot: seg.Hot, payload: seg.HasPayload()}
}

// Option changes the parameters with which Create makes a segment.
type Option func(*shm.Params)

// WithParams replaces all parameters at once.
func WithParams(p shm.Params) Option { return func(q *shm.Params) { *q = p } }

// Create makes a segment without payload at path and returns a handle on it.
// A path that exists is shm.ErrExists and stays as it was.
func Create(path string, opts ...Option) (*Election, error) {
	p := shm.DefaultParams()
	p.Cell = 0
	for _, o := range opts {
		o(&p)
	}
	seg, err := shm.Create(path, p, nil)
	if err != nil {
		return nil, err
	}
	return &Election{seg: seg, hot: seg.Hot, payload: seg.HasPayload(), owned: true}, nil
}

// Open makes a handle on the segment at path, which may have a payload.
func Open(path string) (*Election, error) {
	seg, err := shm.Open(path)
	if err != nil {
		return nil, err
	}
	return &Election{seg: seg, hot: seg.Hot, payload: seg.HasPayload(), owned: true}, nil
}

// OpenOrCreate opens path, and creates it if it does not exist.
func OpenOrCreate(path string, opts ...Option) (*Election, error) {
	return openOrCreate(func() (*Election, error) { return Open(path) }, func() (*Election, error) { return Create(path, opts...) })
}

// Segment is the segment under the handle.
func (e *Election) Segment() *shm.Segment { return e.seg }

// Owner is the owner word: who owns the lease, 0 if nobody, and the latest term.
func (e *Election) Owner() (pid uint32, term uint64) { return shm.UnpackOwner(e.seg.Owner.Load()) }

// Active is the active word: who may act, 0 if nobody, and in which term it
// last changed.
func (e *Election) Active() (pid uint32, term uint64) { return shm.UnpackOwner(e.seg.Active.Load()) }

// Check says whether (pid, term) owns the lease and may act, at this moment:
// nil or ErrFenced. Two loads. It guards nothing that happens after it
// returned; what must be guarded to the end carries the token.
func (e *Election) Check(pid uint32, term uint64) error {
	w := shm.PackOwner(pid, term)
	if !valid(pid) || e.hot.Owner.Load() != w || e.hot.Active.Load() != w {
		return ErrFenced
	}
	return nil
}

// valid reports whether pid can own: 0 is nobody, and one beyond 22 bits would
// be taken for another in a packed word.
func valid(pid uint32) bool { return pid-1 < shm.MaxPID }

// TokenOf is the fencing token of a term of this segment.
func (e *Election) TokenOf(term uint64) role.Token {
	return role.MakeToken(e.seg.Generation(), term)
}

// Epoch is the segment's tick counter.
func (e *Election) Epoch() uint64 { return e.seg.Epoch.Load() }

// Flush writes the segment to its file system.
func (e *Election) Flush() error { return e.seg.Flush() }

// Close unmaps the segment if this handle opened it. The handle, and nothing
// that came from it, may be used afterwards. A lease that is still owned stays
// owned until it is stale.
func (e *Election) Close() error {
	if !e.owned {
		return nil
	}
	return e.seg.Close()
}
