package coord

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/lease"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// Member is this process's seat in a role's segment. Its methods are safe for
// concurrent use unless they say otherwise.
type Member struct {
	opts      options
	env       environment
	name      string
	self      proc.Identity
	pid       uint32
	mapped    *mapping
	params    shm.Params
	elec      *election.Election
	table     *heartbeat.Table
	seat      *heartbeat.Seat
	listeners []heldListener

	launchedBy supervisorSeat
	hold       *shm.RobustHold // the beat goroutine's; nil: there is none
	detect     detection

	notify   notifier
	news     news
	progress progress

	seatMu    sync.Mutex // held while the seat's words are written, but for beats
	left      bool       // the seat was given back; its words are another's
	ready     atomic.Bool
	candidate atomic.Pointer[Candidate]
	far       *time.Timer        // see farOff
	racing    bool               // as the seat says; the campaign's goroutine alone
	nearby    atomic.Bool        // the campaign counts on the owner's death to wake it
	rivals    []heartbeat.Member // of the last look at the order, kept for its room; the campaign's goroutine alone
	slows     *time.Timer        // ends a campaign's pace by slow; the campaign's goroutine alone
	slow      func()
	behind    atomic.Pointer[watch]      // on the owner before, see begun
	rehearsed bool                       // see rehearse; the campaign's goroutine alone
	busy      atomic.Bool                // Run or Campaign is under way, or its leadership lasts
	underWay  sync.Mutex                 // held by Run, and by Campaign until it returns
	current   atomic.Pointer[Leadership] // from the claim to the release
	gone      atomic.Pointer[error]      // the segment is gone, and why: no word is touched any more
	unseated  atomic.Bool                // the seat was lost: its words are another's
	bars      atomic.Uint32              // why the worker's calls do not simply go on, 0: they do
	hung      atomic.Pointer[Leadership] // the one whose work a drill has brought to a stop

	payload     *lease.Payload // set by payloadHandle
	payloadOnce sync.Once

	closeOnce sync.Once
	closing   chan struct{} // Close was called
	stopping  chan struct{} // the member's goroutines are to end
	still     chan struct{} // the beat goroutine has ended
	wg        sync.WaitGroup
}

// Candidate is what a member says of itself to the others.
type Candidate = heartbeat.Candidate

// Join takes a seat in the role that this process was launched for. From then
// on the process beats; it contends only once [Member.Ready] was called and
// Run or Campaign asks for leadership. ctx bounds the joining alone.
//
// The errors are ErrNotSupervised, ErrEnvironment, ErrAlreadyMember, or those
// of opening the segment.
func Join(ctx context.Context, opts ...Option) (*Member, error) {
	o := newOptions(opts)
	env, err := readEnvironment(os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("join a role: %w", err)
	}
	m, err := joinSupervised(ctx, env, o)
	if err != nil {
		return nil, fmt.Errorf("join role %s as %s: %w", env.role, env.name(), err)
	}
	return m, nil
}

func joinSupervised(ctx context.Context, env environment, o options) (*Member, error) {
	held, err := takeListeners(env.listeners)
	if err != nil {
		return nil, err
	}
	open := func() (*shm.Segment, error) { return shm.Open(env.segment) }
	if env.segmentFD >= 0 {
		open = func() (*shm.Segment, error) { return openInherited(env.segmentFD, env.segment) }
	}
	mp, err := attach(env.segment, open)
	if err != nil {
		return nil, err
	}
	if o.candidate == nil {
		o.candidate = &Candidate{Priority: env.priority, NoFailover: env.noFailover}
	}
	return newMember(ctx, env, o, mp, held)
}

// openInherited maps the segment behind the descriptor that the supervisor
// passed on: it works where the path cannot be opened (another user, another
// root), and cannot meet a newer segment of the same name.
func openInherited(fd int, path string) (*shm.Segment, error) {
	if err := checkFD(fd); err != nil {
		return nil, fmt.Errorf("%w: %s: descriptor %d: %w", ErrEnvironment, envSegmentFD, fd, err)
	}
	f, err := duplicate(fd, path) // the first stays, for a process that joins again
	if err != nil {
		return nil, err
	}
	return shm.OpenFile(f, path)
}

// JoinFile takes a seat in the segment at path without a supervisor, and
// creates the segment if there is none (see WithFence, WithTick,
// WithDrainTimeout, WithProgressTimeout). The members tick by themselves. The
// folder should be on a local file system, best on tmpfs, and writable by the
// role's user alone.
//
// Tokens rise for as long as the file exists. Whoever removes it begins them
// anew; storage that remembers the highest token will then refuse. ctx bounds
// the joining alone.
func JoinFile(ctx context.Context, path string, opts ...Option) (*Member, error) {
	o := newOptions(opts)
	mp, err := attach(path, func() (*shm.Segment, error) { return openOrCreate(path, o.create) })
	if err == nil {
		var m *Member
		m, err = newMember(ctx, environment{index: -1, segmentFD: -1, segment: path}, o, mp, nil)
		if err == nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("join %s: %w", path, err)
}

// openOrCreate settles the race of several first members: the link in Create
// lets one win, and the others open what it made.
func openOrCreate(path string, p shm.Params) (*shm.Segment, error) {
	for {
		seg, err := shm.Open(path)
		if !errors.Is(err, os.ErrNotExist) {
			return seg, err
		}
		seg, err = shm.Create(path, p, nil)
		if !errors.Is(err, shm.ErrExists) {
			return seg, err
		}
	}
}

// newMember takes the seat and starts the member's goroutines. On error the
// mapping is given back.
func newMember(ctx context.Context, env environment, o options, mp *mapping, held []heldListener) (_ *Member, err error) {
	defer func() {
		if err != nil {
			mp.leave()
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	self, err := proc.Self()
	if err != nil {
		return nil, err
	}
	m := &Member{
		opts: o, env: env, name: env.name(),
		self: self, pid: uint32(self.PID),
		mapped: mp, params: mp.seg.Params(),
		elec:      election.Attach(mp.seg),
		table:     heartbeat.NewTable(mp.seg),
		listeners: held,
		closing:   make(chan struct{}),
		stopping:  make(chan struct{}),
		still:     make(chan struct{}),
	}
	if o.name != "" {
		m.name = o.name
	}
	m.notify = notifier{path: env.notify, active: m.announce, worker: env.name(), listeners: held, bell: make(chan struct{}, 1)}
	if o.candidate != nil {
		m.candidate.Store(o.candidate)
	} else {
		m.candidate.Store(&Candidate{})
	}
	if m.detect, err = detectionOf(os.Getenv(envDetect)); err != nil {
		return nil, err
	}
	m.launchedBy = m.launcher()
	m.reclaim()
	m.seat, err = m.table.Join(self, heartbeat.JoinOptions{Index: env.index, Unadmitted: env.admission, Candidate: *m.candidate.Load()})
	if err != nil {
		return nil, err
	}
	m.start()
	return m, nil
}

// reclaim frees what an earlier program of this very process holds: execve
// keeps pid and start time, and the registry of mappings has made sure that no
// member of the present program is there. (Table.Join frees what a dead process
// with this one's pid left.) An owner without a seat is left to its beats:
// nothing tells who it is.
func (m *Member) reclaim() {
	for _, other := range m.table.Members() {
		if other.Identity == m.self {
			me := func(pid uint32) bool { return pid == m.pid }
			m.elec.Evict(me)
			m.elec.Bury(me)
		}
	}
}

// start launches the goroutines that doc.go lists.
func (m *Member) start() {
	up := make(chan struct{})
	m.far = time.AfterFunc(farOff, func() {})
	m.wg.Go(func() { defer close(m.still); m.beatLoop(up) })
	<-up // whoever sees this member own sees by what its end is noticed
	m.wg.Go(func() { m.notify.run(m.stopping) })
	if m.opts.check != nil && m.params.ProgressLimit > 0 {
		m.seat.SetWatched(true)
		m.wg.Go(func() { m.runChecks(m.opts.check) })
	}
	if c := m.opts.callbacks; c != nil && c.OnNewLeader != nil {
		m.wg.Go(func() { m.tellNewLeaders(c.OnNewLeader) })
	}
}

// farOff is when a timer fires that nobody waits for. In a process with neither
// timers nor anything in the poller, each beat makes the runtime wake a thread
// to see whether there is something to poll; with one, a thread sleeps in the
// poller: two context switches less at each tick (Go 1.26).
const farOff = 365 * 24 * time.Hour

// Ready says that this process can take over now. A member does not contend
// before. Further calls do nothing.
func (m *Member) Ready() error {
	select {
	case <-m.closing:
		return fmt.Errorf("say ready: %w", ErrClosed)
	default:
	}
	if err := m.trouble(); err != nil {
		return fmt.Errorf("say ready: %w", err)
	}
	if m.ready.CompareAndSwap(false, true) {
		m.onSeat(func(s *heartbeat.Seat) { s.SetReady(true) })
		m.notify.say(sayReady)
		m.stir()
	}
	return nil
}

// SetCandidate changes what this member says of itself to the others: they
// see it at their next look. It replaces what the supervisor's configuration
// said for this worker.
func (m *Member) SetCandidate(c Candidate) {
	m.candidate.Store(&c)
	m.onSeat(func(s *heartbeat.Seat) { s.SetCandidate(c) })
	m.stir()
}

// Name is the worker's name, or "pid N".
func (m *Member) Name() string { return m.name }

// Role is the role's name; empty without a supervisor.
func (m *Member) Role() string { return m.env.role }

// trouble is why this member can never lead again, nil if it can.
func (m *Member) trouble() error {
	if err := m.gone.Load(); err != nil {
		return *err
	}
	if m.unseated.Load() {
		return ErrSeatLost
	}
	return nil
}

// Close leaves the role. A leadership that Run granted is cancelled with
// ErrClosed and waited for, so lead itself must not call Close; one that
// Campaign granted is given up as by Resign. Run and Campaign return ErrClosed.
// When Close returns, the seat is free and none of the member's goroutines is
// left; what was obtained from it (Leadership, views) still answers, with
// errors. A second Close does nothing.
func (m *Member) Close() error {
	var err error
	m.closeOnce.Do(func() {
		close(m.closing)
		m.stir()
		if l := m.current.Load(); l != nil {
			l.cancel(ErrClosed)
		}
		m.underWay.Lock() // until Run or Campaign has returned
		if l := m.current.Load(); l != nil {
			m.give(l) // Campaign's: nobody else will
			<-l.over
		}
		m.underWay.Unlock()
		close(m.stopping)
		m.far.Stop()
		m.endBeating()
		m.wg.Wait()
		m.lookAhead()
		m.onSeat((*heartbeat.Seat).Leave)
		m.seatMu.Lock()
		m.left = true
		m.seatMu.Unlock()
		if m.gone.Load() == nil {
			m.payloadHandle().Close()
		}
		m.mapped.leave()
	})
	return err
}

// stir makes everyone in this process who waits for a change look again.
func (m *Member) stir() {
	m.news.spread()
	m.onSeat((*heartbeat.Seat).Interrupt)
}

// onSeat runs f on the seat, unless it was given back.
func (m *Member) onSeat(f func(*heartbeat.Seat)) {
	m.seatMu.Lock()
	defer m.seatMu.Unlock()
	if !m.left && m.trouble() == nil {
		f(m.seat)
	}
}
