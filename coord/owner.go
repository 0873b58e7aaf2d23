package coord

import (
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// watch is a candidate's hold on the process that owns the lease: opened when
// it was first seen as owner, so that its death is noticed whatever becomes of
// its pid. Only the campaign's goroutine uses it. The zero value watches
// nobody.
type watch struct {
	pid    uint32
	term   uint64
	id     proc.Identity // zero: the owner has no seat, only its beats count
	handle *proc.Handle  // nil: unknown, dead already, or not to be seen from here
	dead   bool          // proven, as far as the segment asks for
}

// follow turns to the owner of term. The same owner is not looked up again,
// unless it had no seat.
func (w *watch) follow(m *Member, pid uint32, term uint64) {
	if w.pid == pid && w.term == term && (pid == 0 || w.id != (proc.Identity{})) {
		return
	}
	w.drop()
	*w = watch{pid: pid, term: term}
	if pid == 0 || pid == m.pid {
		return
	}
	w.id = identityOf(m.table.Members(), pid)
	if w.id == (proc.Identity{}) {
		return
	}
	h, err := proc.OpenHandle(w.id)
	if err == nil {
		w.handle = h
		return
	}
	if proc.Judge(w.id) == proc.Gone {
		w.died(m)
	}
}

// done is closed when the owner is gone; nil, which is never ready, if that
// has been noticed already or cannot be.
func (w *watch) done() <-chan struct{} {
	if w.handle == nil || w.dead {
		return nil
	}
	return w.handle.Done()
}

// provenDead says whether the owner pid is dead, as far as the segment's proof
// asks for. It is called after the owner word was loaded.
func (w *watch) provenDead(m *Member, pid uint32) bool {
	if pid == 0 || pid == m.pid {
		return false
	}
	if pid != w.pid || w.id == (proc.Identity{}) {
		id := identityOf(m.table.Members(), pid)
		return id != (proc.Identity{}) && enough(m.params.Proof, proc.Judge(id))
	}
	dead := w.dead
	switch {
	case dead:
	case w.handle == nil:
		dead = enough(m.params.Proof, proc.Judge(w.id))
	case m.params.Proof == shm.ProofExiting:
		dead = enough(m.params.Proof, w.handle.Judge())
	default:
		select {
		case <-w.handle.Done():
			dead = true
		default:
		}
	}
	if dead {
		w.died(m)
	}
	return dead
}

// died notes that the owner is dead, and when that was known first.
func (w *watch) died(m *Member) {
	if !w.dead {
		m.elec.StampEnd(w.term, proc.MonoNow())
	}
	w.dead = true
}

func enough(proof uint8, v proc.Verdict) bool {
	return v == proc.Gone || v == proc.Exiting && proof == shm.ProofExiting
}

// drop lets the process go.
func (w *watch) drop() {
	if w.handle != nil {
		w.handle.Close()
		w.handle = nil
	}
}

// identityOf is who owns under pid: of several seats with that pid the one
// that joined last, since whoever gets a dead member's pid joins before it
// claims.
func identityOf(members []heartbeat.Member, pid uint32) proc.Identity {
	var id proc.Identity
	var seq uint64
	for i := range members {
		if o := &members[i]; uint32(o.Identity.PID) == pid && (id == proc.Identity{} || o.JoinSeq > seq) {
			id, seq = o.Identity, o.JoinSeq
		}
	}
	return id
}
