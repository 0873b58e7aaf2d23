package coord

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// Campaign waits until this member leads: the lease is its own, the
// predecessor is fenced, the active word names it. It contends only after
// Ready. ctx bounds the waiting alone; the leadership lasts until Resign or
// Close, and its context tells when it is lost. What was lost must be resigned
// too, when the work has stopped: the drain limit applies from the end of the
// leadership's context on.
//
// One campaign or leadership of a member at a time, else ErrBusy. Other errors
// are ctx's cause, ErrClosed, ErrSegmentGone, and election.ErrTermsExhausted.
func (m *Member) Campaign(ctx context.Context) (*Leadership, error) {
	if !m.busy.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("campaign: %w", ErrBusy)
	}
	m.underWay.Lock()
	defer m.underWay.Unlock()
	var rest pauses
	l, err := m.campaign(ctx, context.WithoutCancel(ctx), false, &rest)
	if err != nil {
		m.busy.Store(false)
		return nil, fmt.Errorf("campaign: %w", err)
	}
	m.begun(l)
	return l, nil
}

// campaign claims and gets promoted, again and again until it worked or an
// error says that it cannot. leading is the parent of the leadership's context.
func (m *Member) campaign(ctx, leading context.Context, managed bool, rest *pauses) (*Leadership, error) {
	for {
		l, err := m.attain(ctx, leading, managed)
		if err == nil {
			return l, nil
		}
		if l == nil {
			return nil, err
		}
		l.cancel(err)
		m.give(l)
		l.watch.drop()
		if err := m.stopped(ctx); err != nil {
			return nil, err
		}
		if errors.Is(err, ErrLost) {
			continue // another was faster; nothing to make up for
		}
		if err := m.pause(ctx, rest.next(true, 0, rand.Float64())); err != nil {
			return nil, err
		}
	}
}

// attain claims and gets promoted. On an error, a leadership that it returns
// is to be given back. The goroutine keeps its thread meanwhile, at the pace
// that the segment asks for, and gives it up before anybody leads: then the
// worker's code can run on that very thread, without a wake in between, and
// keeps the pace for its first moment, in which everybody else wakes up and
// wants to have the processor.
func (m *Member) attain(ctx, leading context.Context, managed bool) (*Leadership, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m.unhurry()
	hurry, _ := proc.HurryThread(proc.Pace(m.params.Scheduling)) // the beat goroutine says what is not permitted
	defer hurry.Round()
	l, err := m.claim(ctx, leading, managed)
	if err == nil {
		err = m.promote(ctx, l)
	}
	if err != nil {
		hurry.Slow()
		return l, err
	}
	m.slow = hurry.Slow
	return l, nil
}

// firstMoment is for how long a leader's first thread keeps the pace of a
// campaign, and nobody else is told: time enough for a first write, which all
// those that are woken would keep from the processors.
const firstMoment = time.Millisecond

// begun is called when the work of l is about to begin, and sees to it that what
// can wait is done when it has.
func (m *Member) begun(l *Leadership) {
	m.behind.Store(&l.watch)
	slow := m.slow
	m.slows = time.AfterFunc(firstMoment, func() {
		if slow != nil {
			slow()
		}
		m.notify.say(sayLook | sayActive)
	})
}

// unhurry ends the first moment of the leadership before, unless it has ended.
func (m *Member) unhurry() {
	if m.slows != nil && m.slows.Stop() {
		m.slow() // it may be this very thread
	}
	m.lookAhead()
}

// lookAhead lets go of the owner before the last leadership.
func (m *Member) lookAhead() {
	if w := m.behind.Swap(nil); w != nil {
		w.drop()
	}
}

// announce is for when this member leads, and its work has begun.
func (m *Member) announce() {
	m.lookAhead()
	m.table.WakeAll()
}

// stopped is why there is nothing more to contend for, nil if there is.
func (m *Member) stopped(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-m.closing:
		return ErrClosed
	default:
	}
	return m.trouble()
}

// claim waits for this member's turn and takes the lease. Every wake judges
// the whole condition again: the control word, vacant, proven dead, stale.
func (m *Member) claim(ctx, leading context.Context, managed bool) (l *Leadership, err error) {
	var (
		w     watch
		turn  turn
		fresh fresh
	)
	defer func() {
		if l == nil { // else the leadership drops it, when the work has begun
			w.drop()
		}
	}()
	defer context.AfterFunc(ctx, m.stir)()
	defer m.race(false)
	for {
		if err := m.stopped(ctx); err != nil {
			return nil, err
		}
		count := m.seat.Event() // before the look: see heartbeat.Seat.Event
		if err := m.stopped(ctx); err != nil {
			return nil, err
		}
		in := m.ready.Load() && m.seat.Admitted() && (!m.candidate.Load().NoFailover || m.elec.Control().Nominee == m.seat.Number())
		m.race(in)
		pid, term := m.elec.Owner()
		if left := fresh.left(&w, m.pid, pid, term, shm.MonoNow()); left > 0 {
			m.sleep(count, left)
			continue
		}
		w.follow(m, pid, term)
		w.listens(m)
		wait := m.patience()
		if policy, ok := m.chance(&w, &turn, pid, term); in && ok {
			left := turn.wait(m, pid, term, time.Now())
			if left <= 0 {
				g, err := m.elec.Claim(m.attempt(&w, policy))
				if err == nil {
					return m.won(leading, managed, &w, g), nil
				}
				if !errors.Is(err, election.ErrHeld) {
					return nil, err
				}
				if p, t := m.elec.Owner(); p != pid || t != term {
					continue // another was faster: stand by for it
				}
			} else if wait == 0 || left < wait {
				wait = left
			}
		} else if in && w.hinted != 0 && w.attend(m, count, m.before()) {
			continue
		}
		if m.rehearse() {
			continue
		}
		w.settle()
		w.near = m.near(in)
		m.nearby.Store(w.near)
		m.rest(&w, count, wait)
	}
}

// patience is how long a campaign rests without having been woken; 0: for as
// long as that takes. Whoever makes a tick wakes everybody if the owner is
// stale, the kernel wakes the first two candidates at its death, and a pass of
// the beats one that has become one of them, and everybody if nobody owns. Where
// that is not to be had, or where time alone changes what may be taken, it looks
// at each tick.
func (m *Member) patience() time.Duration {
	switch {
	case !m.detect.tick:
		return 0
	case m.detect.robust && m.detect.pidfd && m.params.Preempt == shm.PreemptSticky:
		return longRest * m.params.Tick
	}
	return m.params.Tick
}

// longRest is the ticks after which a thread that sleeps on events looks again all
// the same. It is long, for when a thread falls asleep again the runtime's monitor
// looks after its processor for 10 ms, with a context switch every 20 µs (Go 1.26).
const longRest = 3000

// rest blocks the campaign's thread until the seat's event count has moved on,
// the vigil has fired or d has passed (0: no limit). It may return early.
func (m *Member) rest(w *watch, count uint32, d time.Duration) {
	if w.near && w.vigil.Keeps() && w.ear == nil {
		err := m.seat.WaitEventOr(&w.vigil, count, d)
		if err == nil {
			return
		}
		w.ear = newEar(m, w.vigil)
	}
	m.sleep(count, d)
}

// sleep is rest without a vigil.
func (m *Member) sleep(count uint32, d time.Duration) {
	if m.seat.WaitEvent(count, d) != nil {
		time.Sleep(max(m.params.Tick/16, time.Millisecond)) // no way to wait for an event here
	}
}

// near reports whether this member is to be woken by the owner's death itself:
// the first candidate and the second, which steps in if the first does not.
// More would only be in their way; they are woken by the next leader, by the
// supervisor, or by their own beat goroutine once they are among the first.
func (m *Member) near(in bool) bool {
	all := m.detect.pidfd && m.detect.tick
	return !all || in && m.before() < heartbeat.Nearest
}

// race tells the others whether this member would claim now.
func (m *Member) race(in bool) {
	if m.racing != in {
		m.racing = in
		m.onSeat(func(s *heartbeat.Seat) { s.SetRacing(in) })
	}
}

// won makes a leadership of a claim. From here on the beat goroutine beats for
// it and can end it.
func (m *Member) won(parent context.Context, managed bool, w *watch, g election.Grant) *Leadership {
	l := newLeadership(parent, m, g)
	l.managed = managed
	l.before = m.predecessor(w, g)
	l.watch = *w
	m.current.Store(l)
	select {
	case <-m.closing: // Close may have looked before the store
		l.cancel(ErrClosed)
	default:
	}
	if g.Reason == role.ReasonPreempt {
		m.table.WakeAll() // the owner of before is healthy, and should hear of it at once
	}
	return l
}

// chance says whether a claim could succeed now, as far as that is cheap to
// say, and by which policy. The claim itself decides.
func (m *Member) chance(w *watch, t *turn, pid uint32, term uint64) (election.Policy, bool) {
	switch policy := m.params.Preempt; {
	case pid == 0 || m.elec.Stale() || m.params.Fence == shm.FenceToken && w.dying(pid, term) || w.provenDead(m, pid):
		return election.Sticky, true
	case policy == election.LowestPID && m.pid < pid:
		return policy, true
	case policy == election.Priority && m.outranks(pid) && t.lasted(pid, term, time.Now()) > preemptAfter*m.params.Tick*time.Duration(m.params.Grace):
		return policy, true
	}
	return election.Sticky, false
}

// preemptAfter is how many graces a leader of lower priority is left alone by
// a ready candidate of higher priority: restarts of a whole role should not
// end in a chain of takeovers.
const preemptAfter = 2

func (m *Member) outranks(pid uint32) bool {
	o, ok := m.table.Of(pid)
	return ok && o.Candidate.Priority < m.candidate.Load().Priority && !m.seat.Member().Last
}

func (m *Member) attempt(w *watch, policy election.Policy) election.Attempt {
	return election.Attempt{
		PID: m.pid, Seat: m.seat.Number(), Grace: m.params.Grace, Policy: policy, Stamp: true,
		Dead:  func(pid uint32) bool { return w.provenDead(m, pid) },
		Dying: w.dying,
	}
}

// before is how many candidates go before this member. Only the campaign calls it.
func (m *Member) before() int {
	me := m.seat.Number()
	if m.elec.Control().Nominee == me {
		return 0
	}
	m.rivals = m.table.AppendMembers(m.rivals[:0])
	return heartbeat.Place(me, m.rivals, m.elec.Epoch(), m.params.Grace)
}

// turn remembers two moments of the present owner's term: since when this
// member has looked at it, and since when the lease has been there to take. So
// a candidate further down the order steps in after its wait, whoever wakes it
// in between.
type turn struct {
	pid         uint32
	term        uint64
	seen, there time.Time
}

// lasted is how long this member has been looking at the owner.
func (t *turn) lasted(pid uint32, term uint64, now time.Time) time.Duration {
	t.turnTo(pid, term, now)
	return now.Sub(t.seen)
}

func (t *turn) turnTo(pid uint32, term uint64, now time.Time) {
	if t.seen.IsZero() || t.pid != pid || t.term != term {
		*t = turn{pid: pid, term: term, seen: now}
	}
}

// wait is how long to leave the lease to those who go before; 0 or less: go.
func (t *turn) wait(m *Member, pid uint32, term uint64, now time.Time) time.Duration {
	before := m.before()
	t.turnTo(pid, term, now)
	if t.there.IsZero() {
		t.there = now
	}
	return t.there.Add(time.Duration(before) * stepIn).Sub(now)
}

// promote waits for the grant of a gate, if there is one, and publishes the
// active word behind the fence.
func (m *Member) promote(ctx context.Context, l *Leadership) error {
	for {
		changed := m.news.wait()
		c := m.elec.Control()
		if !c.Gate || c.GrantedTerm == l.term {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
	pctx, stop := context.WithCancelCause(l.ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	p := election.Promotion{
		PID: m.pid, Term: l.term,
		Known:    l.before.known,
		Replaced: func(_, inFlight uint64) { l.before.work = inFlight },
	}
	if l.grant.Reason == role.ReasonPreempt {
		p.Ask = true // the predecessor is healthy: it may drain
		p.Changed = m.relay(pctx)
	}
	err := m.elec.Promote(pctx, p)
	if err != nil {
		return err
	}
	l.enter(phaseLeading)
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return nil
}

// relay passes news on for as long as ctx lasts, one at a time.
func (m *Member) relay(ctx context.Context) <-chan struct{} {
	changes := make(chan struct{}, 1)
	m.wg.Go(func() {
		for {
			changed := m.news.wait()
			select {
			case changes <- struct{}{}:
			default:
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	return changes
}

// pause waits outside the race, unless this very member is nominated.
func (m *Member) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	before := m.elec.Control()
	for {
		changed := m.news.wait()
		if err := m.stopped(ctx); err != nil {
			return err
		}
		if c := m.elec.Control(); c.Nominee == m.seat.Number() && c != before {
			return nil // it is wanted now; an older nomination was tried already
		}
		select {
		case <-t.C:
			return nil
		case <-changed:
		case <-ctx.Done():
		case <-m.closing:
		}
	}
}

// give hands the lease back after the work has stopped: first the active word,
// so that a successor need not fence this process, then the lease. Both were
// taken from us already if we lost them; that is no error here.
func (m *Member) give(l *Leadership) {
	if !l.giving.CompareAndSwap(false, true) {
		return
	}
	l.enter(phaseOver)
	planned := false
	if m.gone.Load() == nil {
		planned = m.elec.HandOver(m.pid, l.term)
	}
	m.current.Store(nil)
	m.unhang()
	l.before.drop()
	if !planned { // else the next leader says so
		m.notify.say(sayLook)
	}
	close(l.over)
}
