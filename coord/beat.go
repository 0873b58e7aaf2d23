package coord

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// beatLoop is the beat goroutine. Its deadlines are absolute: a tick after the
// segment's last one, whoever made it, so that all members together keep the
// pace of the header and a late pass does not delay the next. In between it
// sleeps on the seat's event word, which others raise when something changed.
//
// It keeps its thread to itself. The thread's end is what fires the robust
// words, so it must not end before the process does; the thread's own timers
// are exact, where the runtime's round to milliseconds; and its priority is its
// own. Where that exactness is not needed, an alarm takes the ticks over
// (atAlarm), and the thread sleeps on events alone.
func (m *Member) beatLoop(up chan struct{}) {
	runtime.LockOSThread()
	if proc.OnMainThread() {
		// The main thread outlives the others where a process ends in pieces,
		// and is not the one to tell of its end. While this goroutine holds
		// it, another one gets another thread.
		done := make(chan struct{})
		go func() { defer close(done); m.beatLoop(up) }()
		<-up
		runtime.UnlockOSThread()
		<-done
		return
	}
	defer runtime.UnlockOSThread()
	defer m.keepThread()()
	close(up)
	b := beater{supervisor: m.launchedBy, heir: -1}
	alarm := m.setAlarm(&b)
	if alarm != nil {
		defer alarm.Close()
	}
	for {
		var count uint32
		if m.gone.Load() == nil {
			count = m.seat.Event() // before the look: see heartbeat.Seat.Event
		}
		select {
		case <-m.stopping:
			return
		default:
		}
		m.news.spread()
		b.mu.Lock()
		now := shm.MonoNow()
		d := m.pass(&b, now)
		if m.hold != nil {
			m.hold.First(b.heir)
		}
		if alarm != nil && alarm.Set(now+int64(d)) == nil {
			d = longRest * m.params.Tick
		}
		b.mu.Unlock()
		m.sleepOn(count, now, d)
	}
}

// setAlarm is where the ticks come from an alarm; nil where they do not.
func (m *Member) setAlarm(b *beater) *shm.Alarm {
	if m.params.Scheduling != shm.SchedulingNormal || m.params.Tick < calmTick {
		return nil
	}
	alarm, err := shm.NewAlarm()
	if err != nil {
		return nil // the thread's own timer does as well, at a price
	}
	m.wg.Go(func() { m.atAlarm(alarm, b) })
	return alarm
}

// calmTick is the tick from which on a member may be 10 ms late, as an alarm is
// at worst where a thread's own timer is not.
const calmTick = 50 * time.Millisecond

// atAlarm makes a pass at each alarm, for the half of what a thread's own timer
// costs: see shm.Alarm. What only the beat goroutine can do, it does at an
// event.
func (m *Member) atAlarm(alarm *shm.Alarm, b *beater) {
	for alarm.Wait() == nil {
		woke := m.news.spread()
		b.mu.Lock()
		heir, now := b.heir, shm.MonoNow()
		d := m.pass(b, now)
		alarm.Set(now + int64(d))
		moved := b.heir != heir
		b.mu.Unlock()
		if l := m.current.Load(); woke || l != nil && l.ctx.Err() != nil {
			rouseMonitor()
		}
		if moved {
			m.onSeat((*heartbeat.Seat).Interrupt)
		}
	}
}

// sleepOn waits for an event of the seat, until d after now at the latest.
func (m *Member) sleepOn(count uint32, now int64, d time.Duration) {
	if m.gone.Load() == nil && m.seat.WaitPatient(count, now+int64(d)) == nil {
		return
	}
	// The segment is gone, or the system has no way to wait.
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-m.stopping:
	}
}

// rouseMonitor makes an ordinary system call, which wakes the runtime's monitor.
// Who was woken at an alarm may now keep the only processor busy for long: without
// the monitor, which sleeps until a system call or a timer, nobody would make it
// share, or look for the next alarm.
func rouseMonitor() { proc.MonoNow() }

// keepThread makes the calling thread the one by whose end this member's end
// is noticed, and gives it its pace. What it returns undoes both.
func (m *Member) keepThread() (undo func()) {
	var ways uint64
	hurry, err := proc.HurryThread(proc.Pace(m.params.Scheduling))
	if err == nil {
		ways |= paceWays[m.params.Scheduling]
	}
	if m.detect.robust {
		if hold, err := m.seat.HoldRobust(); err == nil {
			m.hold = hold
			ways |= shm.WayRobust
		}
	}
	if m.detect.pidfd {
		if h, err := proc.OpenHandle(m.self); err == nil {
			h.Close()
			ways |= shm.WayPidfd
		}
	}
	m.seat.SetWays(ways)
	return func() {
		if m.hold != nil {
			m.hold.Drop(m.trouble() == nil)
		}
		hurry.Round()
		hurry.Slow()
	}
}

// paceWays are the bits by which a seat shows the scheduling that it has.
var paceWays = [...]uint64{shm.SchedulingNice: shm.WayNice, shm.SchedulingFIFO: shm.WayFIFO}

// beater is what is remembered between two passes.
type beater struct {
	mu         sync.Mutex // held through a pass
	epoch      uint64
	pulses     uint64
	idle       bool
	still      stillness
	supervisor supervisorSeat
	checked    int64              // mono ns at which the segment's file was last checked as a whole
	vacant     uint64             // term that was over already in the epoch before, if nobody has the lease
	stirred    uint64             // epoch in which the campaign was told that it is near
	members    []heartbeat.Member // of the last look at all; kept for its room
	heir       int                // the seat whose word is to be fired first, -1 any
}

// pass does what is due at one epoch, and says when the next pass is due. A
// pass in between (an event) repeats what is idempotent.
func (m *Member) pass(b *beater, now int64) time.Duration {
	if err := m.checkSegment(b, now); err != nil && m.gone.Load() == nil {
		err = fmt.Errorf("%w: %w", ErrSegmentGone, err)
		m.gone.Store(&err)
		m.bars.Or(barGone)
		m.news.spread()
	}
	if m.gone.Load() != nil {
		// The words may be beyond the end of the file: not one is touched.
		if l := m.current.Load(); l != nil {
			m.apply(l, judge(m.see(l, b, now, true)))
		}
		return m.params.Tick
	}

	ticked := m.elec.Advance(now)
	epoch := m.elec.Epoch()
	if ticked {
		m.table.WakeHeirs(m.elec.StaleFor(), epoch, m.params.Grace)
	}
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
		m.obey(l)
		m.apply(l, judge(m.see(l, b, now, false)))
		if m.hold != nil {
			// Should this process die now, its heir is to be woken before
			// anybody else needs the processors.
			b.members = m.table.AppendMembers(b.members[:0])
			b.heir = heir(b.members, epoch, m.params.Grace)
		}
	}
	m.watchSupervisor(&b.supervisor)
	if epoch != b.epoch {
		b.epoch = epoch
		m.notify.again()
		m.urge(b)
	}
	if m.backward(m.standing(b, epoch), ticked) {
		return m.untilTick(now, m.params.Grace/backwardPace) + m.params.Tick/4
	}
	return m.untilTick(now, 1)
}

// checkSegment looks at the segment's file: before each touch of a word whether
// it is still as long, and now and then whether it is still the same.
func (m *Member) checkSegment(b *beater, now int64) error {
	if now-b.checked < int64(checkEvery) {
		return m.mapped.seg.CheckSize()
	}
	b.checked = now
	return m.mapped.seg.Check()
}

const checkEvery = 3 * time.Second

// untilTick is how long after now the n-th tick since the last one is due, at
// least a moment.
func (m *Member) untilTick(now int64, n uint64) time.Duration {
	d := m.params.Tick * time.Duration(n)
	due := time.Duration(int64(m.mapped.seg.TickedAt.Load()) + int64(d) - now)
	return min(max(due, m.params.Tick/16), d)
}

// standing is how many candidates go before this member, none if it leads. A
// campaign that is near now and rests as if it were not is woken.
func (m *Member) standing(b *beater, epoch uint64) int {
	if m.current.Load() != nil {
		return 0
	}
	b.members = m.table.AppendMembers(b.members[:0])
	me := m.seat.Number()
	before := heartbeat.Place(me, b.members, epoch, m.params.Grace)
	if before < heartbeat.Nearest && !m.nearby.Load() && epoch != b.stirred && contends(me, b.members) {
		b.stirred = epoch // once: the stir is an event of this goroutine, too
		m.stir()
	}
	return before
}

// urge wakes this member's campaign where it could have the lease for the taking,
// and may not have been told: whoever gave it back can have been stopped before
// it told anybody.
func (m *Member) urge(b *beater) {
	pid, term := m.elec.Owner()
	if pid != 0 || m.current.Load() != nil || m.elec.Control().State != election.ControlOpen {
		return
	}
	if b.vacant == term {
		m.stir()
	}
	b.vacant = term
}

// backwardPace is into how many parts those who stand back in the order divide
// the grace: they beat that often in it, instead of at each tick.
const backwardPace = 2

// backward reports whether this member may leave the ticks to others and beat
// only a few times in each grace: somebody leads, other candidates go first,
// and the last tick was made by somebody else. A role of ten costs half as much
// that way. It comes a quarter of a tick after the others; if it has to tick by
// itself then, nobody before it runs, and it keeps the full pace.
func (m *Member) backward(before int, ticked bool) bool {
	pid, _ := m.elec.Owner()
	return before > 0 && pid != 0 && !ticked && m.params.Grace/backwardPace > 1
}

// beatSeat says that this process lives, and whether its work moves.
func (m *Member) beatSeat(b *beater, epoch uint64) {
	m.seat.Beat(epoch)
	if n := m.progress.pulses.Load(); n != b.pulses {
		if b.pulses == 0 && m.params.ProgressLimit > 0 {
			m.seat.SetWatched(true)
		}
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
		s.still = b.still.look(&m.progress, l.term, m.opts.check != nil, m.bars.Load()&barHang != 0, now, 2*m.params.Tick)
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
		if o.cancel != ErrAskedToResign && o.cancel != ErrRoleClosed { // which the supervisor itself has asked for
			m.notify.say(sayLook)
		}
	}
	if o.exit && l.at() != phaseOver {
		fmt.Fprintf(os.Stderr, "standbyd: %s: lead has not returned %v after its leadership of term %d ended (%v); exiting with status %d\n",
			m.name, m.params.DrainLimit, l.term, context.Cause(l.ctx), ExitStatus)
		os.Exit(ExitStatus)
	}
}

// endBeating makes the beat goroutine end, which sees stopping once it is
// awake. The words of a segment that is gone may not exist any more: then the
// sleeper is woken without raising the count, by a system call that survives
// that, until it has not fallen asleep again in between.
func (m *Member) endBeating() {
	m.onSeat((*heartbeat.Seat).Interrupt)
	for m.trouble() != nil {
		shm.Wake(m.mapped.seg.Seats[m.seat.Number()].Event, 1)
		select {
		case <-m.still:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
