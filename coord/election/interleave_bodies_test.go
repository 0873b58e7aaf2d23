//go:build interleave

package election

import (
	"context"

	"github.com/standbyd/standbyd/coord/shm"
)

// What the processes of a walk do.

func attempt(p *process, policy Policy) Attempt {
	return Attempt{PID: p.pid, Seat: -1, Grace: p.w.seg.Grace(), Policy: policy, Dead: p.w.isDead, Stamp: p.w.plain}
}

// claims makes one claim, beats, and releases.
func claims(policy Policy, beats int) func(*process) {
	return func(p *process) {
		g, err := p.w.e.Claim(attempt(p, policy))
		if err != nil {
			return
		}
		p.w.granted(p, g.Term)
		for i := range beats {
			p.know(1+i, g.Term)
			if p.w.e.Beat(p.pid, g.Term) != nil {
				break
			}
			p.w.beaten(p, g.Term)
		}
		p.know(100, g.Term)
		_ = p.w.e.Release(p.pid, g.Term)
	}
}

// classic is claims by the classic verbs, through a handle of its own.
func classic(beats int) func(*process) {
	return func(p *process) {
		e := Attach(p.w.seg)
		term, err := e.TryClaim(p.pid, p.w.seg.Grace())
		if err != nil {
			return
		}
		p.w.granted(p, term)
		for i := range beats {
			p.know(1+i, term)
			if e.BeatAsLeader(p.pid) != nil {
				break
			}
			p.w.beaten(p, term)
		}
		p.know(100, term)
		_ = e.StepDown(p.pid)
	}
}

// beats owns the lease from the start, beats and releases.
func beats(n int) func(*process) {
	return func(p *process) {
		for i := range n {
			p.know(1 + i)
			if p.w.e.Beat(p.pid, 1) != nil {
				break
			}
			p.w.beaten(p, 1)
		}
		p.know(100)
		_ = p.w.e.Release(p.pid, 1)
	}
}

// keeps owns the lease from the start and claims it again in its own term,
// which changes nothing while it is healthy.
func keeps(p *process) {
	term := p.w.told
	for i := range 2 {
		p.know(1+i, term)
		a := attempt(p, Sticky)
		a.Term = term
		g, err := p.w.e.Claim(a)
		if err != nil {
			return
		}
		if g.Term != term {
			p.w.granted(p, g.Term)
			term = g.Term
		} else if shm.UnpackHeartbeat(p.w.seg.Heartbeat[term&1].Load()).Sealed {
			p.w.fail("P%d is told that it keeps term %d, which is sealed", p.pid, term)
		}
	}
}

// owns lets p own the lease when the walk begins.
func (w *world) owns(p *process) {
	g, err := w.e.Claim(Attempt{PID: p.pid, Seat: -1, Grace: w.seg.Grace()})
	if err != nil {
		panic(err)
	}
	w.told, w.all = g.Term, 1<<g.Term
	w.holder, w.born, w.life = p, w.seg.Epoch.Load(), w.seg.Epoch.Load()
}

// acts lets p own the lease and lead when the walk begins; after that it hangs
// and can only be killed.
func (w *world) acts(p *process) {
	w.owns(p)
	w.seg.Active.Store(w.seg.Owner.Load())
	w.may[p] = w.told
}

func hangs(p *process) {
	p.hung = true
	p.await(pointNone, func() bool { return false })
}

// publishes claims and then changes the payload, once.
func publishes(policy Policy) func(*process) {
	return func(p *process) {
		g, err := p.w.e.Claim(attempt(p, policy))
		if err != nil {
			return
		}
		p.w.granted(p, g.Term)
		p.know(1, g.Term)
		publish(p, g.Term)
		p.know(2, g.Term)
		_ = p.w.e.Release(p.pid, g.Term)
	}
}

// publish is how coord/lease changes the commit word.
func publish(p *process, term uint64) {
	p.pause(pointClaimCommit)
	seen := p.w.seg.Commit.Load()
	p.pause(pointClaimAdoptOwner)
	c := shm.UnpackCommit(seen)
	if c.Term != shm.CommitTerm(term) || p.w.seg.Owner.Load() != shm.PackOwner(p.pid, term) {
		return
	}
	p.pause(pointClaimAdopt)
	c.Seq++
	if p.w.seg.Commit.CompareAndSwap(seen, c.Pack()) {
		p.w.published(p, term)
	}
}

// leads claims, is promoted, leads, and gives everything back in order.
func leads(policy Policy) func(*process) { return leadsBy(policy, (*Election).Promote) }

func leadsBy(policy Policy, promote func(*Election, context.Context, Promotion) error) func(*process) {
	return func(p *process) {
		g, err := p.w.e.Claim(attempt(p, policy))
		if err != nil {
			return
		}
		p.w.granted(p, g.Term)
		p.know(1, g.Term)
		if promote(p.w.e, context.Background(), Promotion{PID: p.pid, Term: g.Term}) == nil {
			p.know(2, g.Term)
			p.w.leads(p)
			p.pause(pointNone)
		}
		p.w.stopped(p)
		p.know(3, g.Term)
		_ = p.w.e.Retire(p.pid, g.Term)
		p.know(4, g.Term)
		_ = p.w.e.Release(p.pid, g.Term)
	}
}

// evicts evicts whoever is dead.
func evicts(p *process) { p.w.e.Evict(p.w.isDead) }

// reborn is another process that gets the pid of p when p is dead. As a
// joining member does, it first ends what p left.
func reborn(p *process, body func(*process)) func(*process) {
	return func(q *process) {
		q.unborn = true
		q.await(pointAny, func() bool { return p.dead })
		q.unborn = false
		s := q.w.seg
		if pid, term := shm.UnpackOwner(s.Owner.Load()); pid == q.pid {
			s.Owner.CompareAndSwap(shm.PackOwner(pid, term), shm.PackOwner(0, term))
		}
		q.pause(pointAny)
		if pid, term := shm.UnpackOwner(s.Active.Load()); pid == q.pid {
			s.Active.CompareAndSwap(shm.PackOwner(pid, term), shm.PackOwner(0, term))
		}
		q.know(1000)
		body(q)
	}
}

// advances moves the epoch on, n times: a tick of anybody.
func advances(n int) func(*process) {
	return func(p *process) {
		for i := range n {
			if i > 0 {
				p.pause(pointNone)
			}
			p.know(i)
			p.w.seg.Epoch.Add(1)
		}
	}
}

// ticks calls Tick as members do, n times.
func ticks(n int, tick func(*Election, int64) bool) func(*process) {
	return func(p *process) {
		for i := range n {
			p.know(2 * i)
			p.pause(pointTickClock)
			now := p.w.clock
			p.know(2*i+1, uint64(now))
			tick(p.w.e, now)
		}
	}
}

// stands lets n ticks pass at once: the whole machine stood still.
func stands(n int) func(*process) {
	return func(p *process) { p.w.clock += int64(n) * int64(p.w.seg.Tick()) }
}

// passes lets time go on, n ticks.
func passes(n int) func(*process) {
	return func(p *process) {
		for i := range n {
			if i > 0 {
				p.pause(pointNone)
			}
			p.know(i)
			p.w.clock += int64(p.w.seg.Tick())
		}
	}
}

// closes closes the role, and says that it is quiet when it has seen that nobody
// owns, and then that nobody acts or whoever does is dead.
func closes(p *process) {
	p.w.e.SetControl(Control{State: ControlClosed, Nominee: -1})
	p.await(pointAny, func() bool { pid, _ := p.w.e.Owner(); return pid == 0 })
	p.await(pointAny, func() bool { pid, _ := p.w.e.Active(); return pid == 0 || p.w.isDead(pid) })
	p.w.quiet = true
}
