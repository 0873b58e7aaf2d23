package coord

import (
	"context"
	"fmt"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// Predecessor is the process that led before. It is safe for concurrent use.
type Predecessor struct {
	pid    int
	term   uint64       // in which it led
	handle *proc.Handle // nil: its lead had returned, it is gone, or nobody can tell
	dead   bool         // proven, as far as the segment asks for
	work   uint64       // set before the leadership is handed out
}

// predecessor is whoever the active word still names at the claim: the only
// one whose lead may not have returned. The watch's handle on it is taken over.
func (m *Member) predecessor(w *watch, g election.Grant) Predecessor {
	pid, term := m.elec.Active()
	if pid == 0 || pid == m.pid {
		return Predecessor{pid: int(g.Previous)}
	}
	p := Predecessor{pid: int(pid), term: term}
	if pid == w.pid && term == w.term {
		p.dead = w.dead
		p.handle, w.handle = w.handle, nil
	}
	if p.handle == nil && !(p.dead && m.params.Proof == shm.ProofGone) {
		if o, ok := ownerOf(m.table.Members(), pid); ok {
			p.handle, _ = proc.OpenHandle(o.Identity) // an error is a proof of death, or nothing to wait for
		}
	}
	return p
}

// known is what Promote need not find out again about (pid, term).
func (p *Predecessor) known(pid uint32, term uint64) (*proc.Handle, bool) {
	if int(pid) != p.pid || term != p.term {
		return nil, false
	}
	return p.handle, p.dead
}

// PID is its process; 0 if nobody led before or nobody knows who.
func (p *Predecessor) PID() int { return p.pid }

// InFlight is the work that it had in flight when it stopped leading: bit n is
// unit n of [Member.Mark]. It is what the next leader may have to look at, do
// again or undo. 0 if nothing was marked or nobody led before.
//
// It is final where the fence is the process or its tree, and where its lead
// had returned; a predecessor that goes on under a fence that is the token
// alone may mark and clear after this was read.
func (p *Predecessor) InFlight() uint64 { return p.work }

// Gone returns when nothing that the predecessor's process held is in the way
// any more: its memory, files, ports and locks are released. That is at once
// if nobody led before, or if its lead had returned. A lead needs this only
// where it binds, locks or opens exclusively in a role whose proof is
// "exiting" or whose fence is "token"; elsewhere the proof was there before
// lead started, and Gone returns at once. The error is ctx's cause.
func (p *Predecessor) Gone(ctx context.Context) error {
	if p.handle == nil || p.handle.Gone() {
		return nil
	}
	p.handle.FreeMemory()
	select {
	case <-p.handle.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until pid %d is gone: %w", p.pid, context.Cause(ctx))
	}
}

func (p *Predecessor) drop() {
	if p.handle != nil {
		p.handle.Close()
	}
}
