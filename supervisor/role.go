package supervisor

import (
	"io/fs"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/internal/listen"
	"github.com/standbyd/standbyd/internal/logreader"
	"github.com/standbyd/standbyd/internal/proc"
	"github.com/standbyd/standbyd/internal/rolesock"
)

// roleLoop is one role at work. Its goroutine (run) owns every field below
// the line; others reach it through tell, and read what it publishes.
type roleLoop struct {
	sup    *Supervisor
	config RoleConfig
	user   identity
	paths  rolePaths

	inbox     chan input
	done      chan struct{} // closed when run has returned
	published atomic.Pointer[RoleStatus]
	atWork    atomic.Pointer[RoleConfig] // the one that the step goes by; never written
	dismissed atomic.Bool                // it stops for good, and no config has it
	pluginLog atomic.Pointer[output]     // the hooks write to it
	queue     *hookQueue
	load      load

	// ---- owned by run ----

	st        state
	before    map[string]bool   // what was in the role's folder before open; nil: open was not called
	hadFolder bool              // there was one then
	seg       *segmentUse       // nil while there is none
	posts     []*post           // by worker index
	reader    *logreader.Reader // nil: we read by ourselves
	socket    *rolesock.Socket
	listeners []*listen.Held     // as config.Listen; nil: not held
	nextHooks []NamedHooks       // for when the present ones have stopped
	backlog   []input            // made by effects, taken before the inbox
	ticked    bool               // the epoch was advanced by us at the last look: perhaps nobody else does
	pace      int                // ticks between two looks
	settled   bool               // the last input was a look at a role that is led and whole
	seen      inSeen             // of the last look
	awake     int64              // mono ns at which run was woken last
	shown     int64              // awake as it was when the status was published last
	shownAt   uint64             // and the number of inputs then
	members   []heartbeat.Member // of the last look, kept for its room
	hiring    time.Time          // when the start of the hooks began
	mended    time.Time          // when the role's folder was looked at last
	whole     fs.FileInfo        // the folder as it was then, if nothing was missing and it had not changed for a while
}

func newRoleLoop(s *Supervisor, c RoleConfig, u identity) *roleLoop {
	r := &roleLoop{
		sup: s, config: c, user: u,
		paths: rolePaths{dir: roleDir(s.config.RuntimeDir, c.Name), logs: logsDir(s.config.StateDir), ends: deathsDir(s.config.StateDir)},
		inbox: make(chan input, 64), done: make(chan struct{}),
		listeners: make([]*listen.Held, len(c.Listen)),
	}
	r.st = newState(&policy{RoleConfig: c}, proc.MonoNow())
	r.atWork.Store(&r.st.policy.RoleConfig)
	r.publish()
	return r
}

// tell brings an input to the role. After the role's end it does nothing.
// Safe for concurrent use; it waits while the role is busy.
func (r *roleLoop) tell(in input) bool {
	select {
	case r.inbox <- in:
		return true
	case <-r.done:
		return false
	}
}

func now() moment { return moment{Wall: time.Now(), Mono: proc.MonoNow()} }

// run owns the role until it has stopped.
func (r *roleLoop) run() {
	defer close(r.done)
	defer r.watchFaults()()
	ticks := time.NewTimer(r.untilTick())
	defer ticks.Stop()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	r.take(inLook{})
	if len(r.config.Hooks) > 0 {
		go r.queue.run()
	} else {
		r.take(inHooked{})
	}
	r.awake = proc.MonoNow()
	for began := time.Now(); r.st.phase != phaseStopped; {
		if !r.quiet() {
			r.publish()
		}
		wait := time.Hour
		if at := r.st.nextDue(); at != 0 {
			wait = max(time.Duration(at-proc.MonoNow()), 0)
		}
		due.Reset(wait)
		r.load.busy.Add(int64(time.Since(began)))
		select {
		case in := <-r.inbox:
			began = time.Now()
			r.wake()
			r.take(in)
		case at := <-ticks.C:
			began = time.Now()
			r.wake()
			r.load.tick(began.Sub(at))
			r.tick()
			ticks.Reset(r.untilTick())
		case <-due.C:
			began = time.Now()
			r.wake()
			// What happened meanwhile comes first: a process that was stopped
			// for a while finds deadlines that others have met in time.
			r.take(inLook{})
			r.take(inDue{jitter: rand.Float64()})
		}
		if r.pace > 1 && !r.settled {
			ticks.Reset(r.untilTick())
		}
	}
	r.publish()
}

// quietFor is how old what quiet leaves published can get: epochs and beats go
// on in it by themselves.
const quietFor = time.Second

// quiet reports whether what is published may stay as it is: nothing has been
// decided since, and it is not old.
func (r *roleLoop) quiet() bool {
	steps := r.load.inputs.Load()
	same := steps == r.shownAt && r.awake-r.shown < int64(quietFor)
	if !same {
		r.shownAt, r.shown = steps, r.awake
	}
	return same
}

// frozenSlack is how much later than a tick the loop may be woken on a busy
// machine without counting as frozen.
const frozenSlack = 500 * time.Millisecond

// wake notices that the loop did not run for a while: this process was stopped,
// or had no processor. Workers are not blamed for deadlines in that time.
func (r *roleLoop) wake() {
	before := r.awake
	r.awake = proc.MonoNow()
	if gap := time.Duration(r.awake - before); gap > time.Duration(r.pace+1)*r.config.Tick+frozenSlack {
		r.take(inFrozen{gap})
	}
}

// restfulPace is into how many parts of the grace the looks at a role divide it
// in which nothing happens, where others tick.
const restfulPace = 3

// untilTick is how long it is until the next look: at the next multiple of a
// tick, or of several in a role that is led and whole and ticks by itself.
// Roles with the same tick so share one wake-up of the process: a hundred roles
// that each woke it by themselves cost ten times as much.
func (r *roleLoop) untilTick() time.Duration {
	if r.pace = 1; r.ticked {
		return r.config.Tick // since then: at the multiple it might not be due yet
	}
	if r.settled {
		r.pace = max(1, r.config.Grace/restfulPace)
	}
	d := time.Duration(r.pace) * r.config.Tick
	left := d - time.Duration(proc.MonoNow())%d
	if r.pace > 1 {
		left += r.config.Tick / 4 // after those who tick
	}
	return left
}

// take decides about one input and performs what follows, until nothing does.
func (r *roleLoop) take(in input) {
	r.backlog = append(r.backlog, in)
	for len(r.backlog) > 0 {
		in := r.backlog[0]
		r.backlog = r.backlog[1:]
		switch got := in.(type) {
		case inLook:
			before := r.seen
			if in = r.look(); in == nil {
				continue
			}
			if seen, ok := in.(inSeen); ok && r.settled && seen.same(before) {
				r.st.epoch, r.st.seats = seen.epoch, seen.seats
				if r.st.silentSeats() == r.st.silents {
					continue
				}
			}
		case inFiles:
			if in = r.takeFiles(got); in == nil {
				continue
			}
		case inReload:
			if r.st.phase < phaseRenewing {
				got.was = r.user
				if err := r.prepare(got); err != nil {
					r.refuse(got, err)
					continue
				}
				in = got
			}
		case inHook:
			got.status = hookStatus(r.config.Hooks[got.hook])
			in = got
		}
		r.load.inputs.Add(1)
		var effects []effect
		r.st, effects = step(r.st, in, now())
		r.atWork.Store(&r.st.policy.RoleConfig) // before anybody is answered
		_, looked := in.(inSeen)
		r.settled = looked && len(effects) == 0 && r.st.phase == phaseLed && r.st.pending == nil && r.st.drill == nil && r.st.roll == nil && r.st.change == nil
		for _, e := range effects {
			r.perform(e)
		}
	}
}

// next queues an input that an effect has brought about.
func (r *roleLoop) next(in input) { r.backlog = append(r.backlog, in) }

func (r *roleLoop) emit(e Event) {
	e.Role = r.config.Name
	e.Text, e.Error = printable(e.Text), printable(e.Error)
	r.sup.bus.publish(e)
}

// listenToSocket turns datagrams into inputs until the socket is closed.
func (r *roleLoop) listenToSocket(s *rolesock.Socket) {
	for {
		m, err := s.Receive()
		if err != nil {
			return
		}
		if m.Fields["FDSTORE"] == "1" && len(m.Files) > 0 {
			if !r.tell(inFiles{m}) {
				m.CloseFiles()
			}
			continue
		}
		if said(m.Fields) {
			in := inNotify{pid: m.PID, line: lineOf(m.PID), mainLine: mainLine(m.Fields), fields: m.Fields}
			// First the segment: a member takes its seat before it says that it is ready.
			r.tell(inLook{})
			r.tell(in)
		}
		// A sender that waits for a barrier may go on (and end) from here on.
		m.CloseFiles()
		if !r.tell(inLook{}) {
			return
		}
	}
}

// said tells whether a datagram has more in it than a reason to look.
func said(fields map[string]string) bool {
	for key := range fields {
		if key != "STANDBYD_LOOK" && key != "BARRIER" {
			return true
		}
	}
	return false
}

func mainLine(fields map[string]string) []int {
	pid, err := strconv.Atoi(fields["MAINPID"])
	if err != nil {
		return nil
	}
	return lineOf(pid)
}

// beginLater makes a role whose open failed ready to try again while others
// run: it starts without a segment, as one that has lost it.
func (r *roleLoop) beginLater() {
	if r.queue != nil {
		return
	}
	r.st.phase, r.st.sockets = phaseRenewing, len(r.config.Listen) == 0
	r.hire()
}
