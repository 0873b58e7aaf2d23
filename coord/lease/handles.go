package lease

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
)

// Handle is one open [OwnerLease] of this process, as [Handles] saw it.
type Handle struct {
	Path     string    `json:"path"`
	Type     string    `json:"type"`      // of the payload
	OpenedAt time.Time `json:"opened_at"` // wall clock
	Owner    uint32    `json:"owner"`     // who owns the lease now, whoever it is; 0 nobody
	Term     uint64    `json:"term"`      // the latest term
	Claim    Outcomes  `json:"claim"`     // attempts, by TryAcquire, WithLease and while an Acquire waits
	Release  Outcomes  `json:"release"`   // by Release, WithLease and the claims that Acquire gave
	Read     Outcomes  `json:"read"`      // ReadAsOwner
	Write    Outcomes  `json:"write"`     // WriteAsOwner, Claim.Write, WithLease
	Beat     Outcomes  `json:"beat"`      // the first of each epoch
}

// Outcomes counts how an operation ended.
//
// What succeeds and changes nothing is not counted: a read, a snapshot, a
// check, a claim by the owner, a beat in an epoch already beaten. Those stores would cost more than the
// operation, and slow down goroutines that only read.
type Outcomes struct {
	OK      uint64 `json:"ok"`
	Refused uint64 `json:"refused"` // ErrHeld, ErrNotOwner, ErrLost
	Failed  uint64 `json:"failed"`  // any other error
}

// Handles are the handles that this process has open, in the order in which
// they were opened, with what was done through each. Counters begin at 0 with
// the handle and end with it. They cost no locked instruction: those of writes
// are exact; of the others one may be missed when several goroutines use one
// handle at the same moment. Safe for concurrent use.
func Handles() []Handle {
	registry.Lock()
	defer registry.Unlock()
	all := make([]Handle, 0, len(registry.open))
	for _, r := range slices.SortedFunc(maps.Keys(registry.open), func(a, b *registered) int { return cmp.Compare(a.number, b.number) }) {
		owner, term := shm.UnpackOwner(r.p.hot.Owner.Load())
		w, n := &r.p.count, r.e.Counts()
		all = append(all, Handle{
			Path: r.p.seg.Path(), Type: r.kind, OpenedAt: r.at, Owner: owner, Term: term,
			Claim:   Outcomes{OK: n.Claims, Refused: n.ClaimsRefused, Failed: n.ClaimsFailed},
			Release: Outcomes{OK: n.Releases, Refused: n.ReleasesRefused},
			Read:    w.read.outcomes(), Write: r.p.writes(),
			Beat: Outcomes{OK: n.Beats, Refused: n.BeatsRefused},
		})
	}
	return all
}

// Var is [Handles] for package expvar, which this package does not link, since
// it brings a web server: expvar.Publish("leases", lease.Var{}).
type Var struct{}

// String is Handles as JSON.
func (Var) String() string {
	b, err := json.Marshal(Handles())
	if err != nil {
		return "[]"
	}
	return string(b)
}

// registry holds the open handles of the process.
var registry struct {
	sync.Mutex
	open   map[*registered]struct{}
	opened uint64
}

type registered struct {
	number uint64
	kind   string
	at     time.Time
	p      *Payload
	e      *election.Election
}

func register(p *Payload, e *election.Election, kind string) *registered {
	registry.Lock()
	defer registry.Unlock()
	registry.opened++
	r := &registered{number: registry.opened, kind: kind, at: time.Now(), p: p, e: e}
	if registry.open == nil {
		registry.open = map[*registered]struct{}{}
	}
	registry.open[r] = struct{}{}
	return r
}

// forget comes before the segment is unmapped: Handles reads its owner word.
func (r *registered) forget() {
	registry.Lock()
	defer registry.Unlock()
	delete(registry.open, r)
}

// counters are one handle's.
// Those of the words of the election are its own.
type counters struct{ read, write counter }

type counter struct{ ok, refused, failed shm.LocalWord }

func (c *counter) outcomes() Outcomes {
	return Outcomes{OK: c.ok.Load(), Refused: c.refused.Load(), Failed: c.failed.Load()}
}

// writes are those of the handle, with those made while it was lent.
func (p *Payload) writes() Outcomes {
	o := p.count.write.outcomes()
	if aside := p.aside.Load(); aside != nil {
		more := aside.writes()
		o.OK, o.Refused, o.Failed = o.OK+more.OK, o.Refused+more.Refused, o.Failed+more.Failed
	}
	return o
}

// miss counts one that ended with err, which is not nil.
func (c *counter) miss(err error) {
	switch err {
	case ErrHeld, ErrNotOwner, ErrLost:
		increment(&c.refused)
	default:
		increment(&c.failed)
	}
}

// increment is not atomic as a whole: see Handles.
func increment(w *shm.LocalWord) { w.Store(w.Load() + 1) }
