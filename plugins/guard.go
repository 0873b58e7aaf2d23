package plugins

import (
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

// guard compares a token with the role's segment, which it maps read-only. It
// asks nobody, so it also tells the truth while the supervisor is stopped.
type guard struct {
	token role.Token
	pid   uint32

	mu  sync.RWMutex // close waits for checks: they read the mapping
	seg *shm.Segment // nil after close
}

func openGuard(t Transition) (*guard, error) {
	seg, err := shm.OpenReadOnly(t.Segment)
	if err != nil {
		return nil, fmt.Errorf("watch token %s of role %s: %w", t.Token, t.Role, err)
	}
	if g := seg.Params().Generation; g != t.Token.Generation() {
		seg.Close()
		return nil, fmt.Errorf("watch token %s of role %s: %s is of generation %d", t.Token, t.Role, t.Segment, g)
	}
	return &guard{token: t.Token, pid: uint32(t.PID), seg: seg}, nil
}

// check says whether the owner word and the active word both name the leader
// that the token was granted to. Two loads and no system call.
func (g *guard) check() (err error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.seg == nil {
		return fmt.Errorf("token %s: the duty has ended: %w", g.token, ErrNotLeading)
	}
	// Somebody may have cut the file: that is the end of this leadership, not
	// of this process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if _, ok := p.(interface{ Addr() uintptr }); !ok {
			panic(p)
		}
		err = fmt.Errorf("token %s: segment %s was cut: %w", g.token, g.seg.Path(), ErrNotLeading)
	}()
	want := shm.PackOwner(g.pid, g.token.Term())
	owner, active := g.seg.Owner.Load(), g.seg.Active.Load()
	if owner == want && active == want {
		return nil
	}
	opid, oterm := shm.UnpackOwner(owner)
	apid, aterm := shm.UnpackOwner(active)
	return fmt.Errorf("token %s of pid %d: owner is pid %d in term %d, active is pid %d in term %d: %w",
		g.token, g.pid, opid, oterm, apid, aterm, ErrNotLeading)
}

// look is check, and whether the file under the mapping is still the role's:
// a segment that was removed keeps its last words for ever.
func (g *guard) look() error {
	if err := g.check(); err != nil {
		return err
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.seg == nil {
		return ErrNotLeading
	}
	if err := g.seg.Check(); err != nil {
		return fmt.Errorf("token %s: %w: %w", g.token, ErrNotLeading, err)
	}
	return nil
}

func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seg != nil {
		g.seg.Close()
		g.seg = nil
	}
}
