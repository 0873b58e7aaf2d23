package coord

import (
	"context"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// rehearsalLimit is when a rehearsal that does not come to its end is broken
// off.
const rehearsalLimit = 200 * time.Millisecond

// rehearse goes through two takeovers, one after a death and one of a vacant
// lease, once in this member's life, and reports whether it did so now. A
// standby may wait for months, and its takeover is the first time that this
// code runs in its process: each page of it would be missing from the page
// table, the stack too small, the heap without a block of the size wanted,
// which together take several times as long as the takeover itself. It plays in
// a segment in private memory, by a member that nobody can see, so it changes
// nothing for anybody. Part of the campaign's goroutine, whose stack it is that
// is to have grown, at a moment at which there is nothing else to do.
func (m *Member) rehearse() bool {
	if m.rehearsed {
		return false
	}
	m.rehearsed = true
	m.mapped.seg.Populate()
	m.payloadHandle()
	if h, err := proc.OpenHandle(m.self); err == nil {
		h.Judge()
		h.Pause(time.Microsecond)
		h.Close()
	}
	_, _ = m.play() // one that fails costs time at the takeover, and nothing else
	return true
}

// play goes through the takeovers, in a segment that it returns.
func (m *Member) play() (*shm.Segment, error) {
	p := m.params
	p.Seats, p.Writers = 4, 1
	if p.Fence == shm.FenceTree {
		p.Fence = shm.FenceProcess // nobody's descendants are to be looked for
	}
	seg, err := shm.Scratch(p)
	if err != nil {
		return nil, err
	}
	return seg, m.playIn(seg)
}

func (m *Member) playIn(seg *shm.Segment) error {
	ctx, cancel := context.WithTimeout(context.Background(), rehearsalLimit)
	defer cancel()
	understudy, err := m.understudy(seg)
	if err != nil {
		return err
	}
	if err := bequeath(ctx, seg, m.self); err != nil {
		return err
	}
	for range 2 {
		l, err := understudy.claim(ctx, ctx, true)
		if err != nil {
			return err
		}
		if err = understudy.promote(ctx, l); err == nil {
			s := spell{l: l}
			understudy.perform(&s, actAsLeader)
			err = s.err
		}
		understudy.give(l)
		understudy.lookAhead()
		if err != nil {
			return err
		}
	}
	return nil
}

// understudy is a member like m, in seg, with nobody to beat or to talk for it.
func (m *Member) understudy(seg *shm.Segment) (*Member, error) {
	u := &Member{
		self: m.self, pid: m.pid, name: m.name,
		mapped: &mapping{seg: seg}, params: seg.Params(),
		elec: election.Attach(seg), table: heartbeat.NewTable(seg),
		detect: m.detect, rehearsed: true,
		closing: make(chan struct{}), stopping: make(chan struct{}),
	}
	u.notify = notifier{active: u.announce, bell: make(chan struct{}, 1)}
	u.candidate.Store(&Candidate{})
	var err error
	if u.seat, err = u.table.Join(m.self, heartbeat.JoinOptions{Index: -1}); err != nil {
		return nil, err
	}
	u.seat.SetReady(true)
	u.ready.Store(true)
	return u, nil
}

// bequeath has a process of another boot of the machine lead in seg, which
// therefore is dead. seg's fence is not the tree: the process that has its number
// now is another's.
func bequeath(ctx context.Context, seg *shm.Segment, like proc.Identity) error {
	dead := proc.Identity{PID: like.PID%shm.MaxPID + 1, Start: like.Start, Boot: like.Boot ^ 2, PIDNS: like.PIDNS}
	seat, err := heartbeat.NewTable(seg).Join(dead, heartbeat.JoinOptions{Index: -1})
	if err != nil {
		return err
	}
	e := election.Attach(seg)
	g, err := e.Claim(election.Attempt{PID: uint32(dead.PID), Seat: seat.Number(), Grace: 1, Stamp: true})
	if err != nil {
		return err
	}
	return e.Promote(ctx, election.Promotion{PID: uint32(dead.PID), Term: g.Term})
}

// actAsLeader does what most leads begin with.
func actAsLeader(_ context.Context, l *Leadership) error {
	if err := l.Check(); err != nil {
		return err
	}
	claim, err := ClaimOf[[1]uint64](l)
	if err != nil {
		return err
	}
	v, err := claim.Read()
	if err != nil {
		return err
	}
	return claim.Write(v)
}
