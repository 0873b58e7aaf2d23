package coord

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// beatLoop is the beat goroutine. Its deadlines are absolute: a tick after the
// segment's last one, whoever made it, so that all members together keep the
// pace of the header and a late pass does not delay the next.
func (m *Member) beatLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	b := beater{supervisor: m.launchedBy}
	for {
		select {
		case <-m.stopping:
			return
		case <-m.poke:
		case <-timer.C:
		}
		timer.Reset(m.pass(&b, proc.MonoNow()))
	}
}

// beater is what the beat goroutine remembers between two passes.
type beater struct {
	epoch      uint64
	pulses     uint64
	idle       bool
	still      stillness
	supervisor supervisorSeat
}

// pass does what is due at one epoch, and says when the next pass is due. A
// pass in between (an event) repeats what is idempotent.
func (m *Member) pass(b *beater, now int64) time.Duration {
	if err := m.mapped.seg.Check(); err != nil && m.gone.Load() == nil {
		err = fmt.Errorf("%w: %w", ErrSegmentGone, err)
		m.gone.Store(&err)
		m.news.spread()
	}
	if m.gone.Load() != nil {
		// The words may be beyond the end of the file: not one is touched.
		if l := m.current.Load(); l != nil {
			m.apply(l, judge(m.see(l, b, now, true)))
		}
		return m.params.Tick
	}

	m.elec.Tick(now)
	epoch := m.elec.Epoch()
	if !m.seat.Held() && !m.unseated.Swap(true) {
		if l := m.current.Load(); l != nil {
			l.cancel(ErrSeatLost)
		}
		m.news.spread()
	}
	if !m.unseated.Load() {
		m.beatSeat(b, epoch)
	}
	if l := m.current.Load(); l != nil {
		m.apply(l, judge(m.see(l, b, now, false)))
	}
	m.watchSupervisor(&b.supervisor)
	if epoch != b.epoch {
		b.epoch = epoch
		m.notify.again()
		// Whoever waits judges its whole condition at each epoch: a process
		// that stopped between a change and its wake has woken nobody.
		m.news.spread()
	}
	due := time.Duration(int64(m.mapped.seg.TickedAt.Load()) + int64(m.params.Tick) - proc.MonoNow())
	return min(max(due, m.params.Tick/16), m.params.Tick)
}

// beatSeat says that this process lives, and whether its work moves.
func (m *Member) beatSeat(b *beater, epoch uint64) {
	m.seat.Beat(epoch)
	if n := m.progress.pulses.Load(); n != b.pulses {
		b.pulses = n
		m.seat.Pulse()
	}
	if idle := b.pulses != 0 && b.pulses == m.progress.idleAt.Load(); idle != b.idle {
		b.idle = idle
		m.seat.SetIdle(idle)
	}
}

// see looks at leadership l as judge wants it.
func (m *Member) see(l *Leadership, b *beater, now int64, gone bool) sight {
	s := sight{
		phase: l.at(), segmentGone: gone, stalled: l.stalled.Load(),
		progressLimit: m.params.ProgressLimit, drainLimit: m.params.DrainLimit,
	}
	if from := l.drainFrom.Load(); from != 0 {
		s.draining, s.drained = true, time.Duration(now-from)
	}
	if gone {
		return s
	}
	pid, term := m.elec.Owner()
	s.owner = pid == m.pid && term == l.term
	c := m.elec.Control()
	s.closed = c.State == election.ControlClosed
	s.resign = c.ResignTerm == l.term
	if s.phase == phaseLeading {
		s.still = b.still.look(&m.progress, l.term, m.opts.check != nil, now, 2*m.params.Tick)
	}
	return s
}

// apply carries an order out.
func (m *Member) apply(l *Leadership, o order) {
	if o.beat && m.elec.Beat(m.pid, l.term) != nil && l.at() != phaseOver {
		o.cancel = ErrLost // sealed, or taken since we looked
	}
	if o.cancel == ErrStalled {
		l.stalled.Store(true)
	}
	if o.cancel != nil && l.ctx.Err() == nil {
		l.cancel(o.cancel)
		m.notify.say(sayLook)
	}
	if o.exit && l.at() != phaseOver {
		fmt.Fprintf(os.Stderr, "standbyd: %s: lead has not returned %v after its leadership of term %d ended (%v); exiting with status %d\n",
			m.name, m.params.DrainLimit, l.term, context.Cause(l.ctx), ExitStatus)
		os.Exit(ExitStatus)
	}
}

// endListening makes the listen goroutine end, which sees stopping or gone once
// it is awake. The words of a segment that is gone may not exist any more: then
// the sleeper is woken without raising the count, by a system call that
// survives that, until it has not fallen asleep again in between.
func (m *Member) endListening() {
	m.onSeat((*heartbeat.Seat).Interrupt)
	for m.trouble() != nil {
		shm.Wake(m.mapped.seg.Seats[m.seat.Number()].Event, 1)
		select {
		case <-m.deaf:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// listenLoop is the listen goroutine. While it sleeps it holds a thread, and
// burns nothing.
func (m *Member) listenLoop() {
	for m.trouble() == nil {
		count := m.seat.Event() // before the look: see heartbeat.Seat.Event
		select {
		case <-m.stopping:
			return
		default:
		}
		m.news.spread()
		select {
		case m.poke <- struct{}{}:
		default:
		}
		if m.seat.WaitEvent(count, 0) != nil {
			return // cannot be waited for here: the beat goroutine looks at each epoch
		}
	}
}
