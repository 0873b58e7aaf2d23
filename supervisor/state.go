package supervisor

import (
	"slices"
	"strconv"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// moment is one reading of both clocks. Decisions use Mono (CLOCK_MONOTONIC,
// nanoseconds, the same for every process of the machine); Wall is for people.
type moment struct {
	Wall time.Time
	Mono int64
}

func (m moment) after(d time.Duration) int64 { return m.Mono + int64(d) }

// phase is what a role is doing, as the rows of roleTable.
type phase int

const (
	phaseStarting phase = iota // nobody has led yet
	phaseLed
	phaseSwitching // a change of leader that was asked for is under way
	phaseVacant    // nobody leads and somebody may
	phasePaused    // nobody leads, and nobody takes over by itself before resume
	phaseHeld      // nobody leads and nobody may
	phaseRenewing  // the segment is lost: all workers end, then a new one is made
	phaseClosing   // shutdown: the leader drains, hooks are demoted
	phaseStopping  // shutdown: all workers are told to stop
	phaseEnding    // shutdown: hooks stop
	phaseStopped
	phaseCount
)

var phaseNames = [phaseCount]string{"starting", "led", "switching", "vacant", "paused", "held", "renewing", "closing", "stopping", "ending", "stopped"}

func (p phase) String() string { return phaseNames[p] }

// shown is the phase in the words of Snapshot. While the role closes it is
// led as long as somebody leads.
func (s *state) shown() RoleState {
	if s.phase < phaseClosing && s.led.term == 0 && s.halted() {
		return RoleStopped
	}
	switch s.phase {
	case phaseLed:
		return RoleLed
	case phaseStarting:
		return RoleStarting
	case phaseSwitching:
		return RoleSwitching
	case phasePaused:
		return RolePaused
	case phaseHeld:
		return RoleHeld
	case phaseStopped:
		return RoleStopped
	}
	if s.led.term != 0 {
		return RoleLed
	}
	if s.phase >= phaseClosing && !s.reopening {
		return RoleStopped
	}
	return RoleVacant
}

// lot is what a worker is doing, as the rows of workerTable.
type lot int

const (
	lotStopped  lot = iota // no process, none wanted
	lotStarting            // launched, not ready yet
	lotStandby
	lotLeader
	lotDraining // A names it and its lead has to end
	lotBackoff  // no process, one is wanted later
	lotFailed   // no process, one is wanted after the cool-down
	lotQueued   // no process, one is wanted as soon as it is its turn
	lotStopping // has been told to end
	lotEnded    // dead, and being buried
	lotCount
)

var lotNames = [lotCount]WorkerState{WorkerStopped, WorkerStarting, WorkerStandby, WorkerLeader, WorkerDraining, WorkerBackoff, WorkerFailed, WorkerStarting, WorkerStopping, WorkerStopping}

func (l lot) String() string {
	switch l {
	case lotEnded:
		return "ended"
	case lotQueued:
		return "queued"
	}
	return string(lotNames[l])
}

// hold is (pid, term) as in the owner and the active word. pid 0: nobody.
type hold struct {
	pid  uint32
	term uint64
}

// controlWord is what the supervisor wants in the segment's control word.
type controlWord struct {
	mode    controlMode
	gate    bool
	nominee int    // seat, -1 for none
	resign  uint64 // term that is asked to resign
	granted uint64 // term that may pass the gate
	until   int64  // mono ns; 0: no end
	byHand  bool   // paused by an operator
	planned bool   // the nominee follows the resigning term as an operator wants
}

type controlMode int

const (
	controlOpen controlMode = iota
	controlPaused
	controlHeld
	controlClosed
)

// worker is one place of a role: what is wanted, and what is observed.
type worker struct {
	name     string
	lot      lot
	wanted   bool
	extra    bool // adopted, but no longer in the config
	pid      int  // 0: no process
	ready    bool
	leading  uint64 // term for which A names it, 0 if none
	started  time.Time
	startAt  int64 // mono ns of the launch
	readyAt  int64 // mono ns since it is ready, 0 if it is not
	due      int64 // mono ns of the deadline of its lot, 0 for none
	restarts int
	row      int           // failures in a row, for the back-off
	pause    time.Duration // the back-off before the present life
	ends     []int64       // mono ns of the ends within BurstPer
	lastExit *Exit
	why      string
	barred   int64  // mono ns until which it goes last (a vetoed candidate)
	past     []int  // pids of its last lives, newest last
	told     bool   // the life that ends was told to end
	orderly  bool   // and as part of a restart, a change or a stop that was asked for
	struck   bool   // its process is ended by a failover that was asked for
	led      bool   // its last process led when it ended
	drilled  int    // pid of the life that a drill hits; its end is no failure
	signal   string // the last one that was sent to end the present life: "TERM", "KILL"
	vitals   vitals
	halted   bool   // stopped by hand
	outside  bool   // its last life was given up, and had not joined the role
	rests    bool   // stopped by the role's restart policy
	lastOut  bool   // is to be stopped when the others are gone
	version  string // of the settings with which its process was started

	stoppedAs lot // what it was when it was told to end
}

// leadership is an active term as it was observed.
type leadership struct {
	hold
	worker int // index, -1 if it is nobody's that we know
	reason role.Reason
	prev   string // name of the worker that led before
	since  int64  // mono ns at which we saw it first
}

// fencing is a previous leader that does not end.
type fencing struct {
	hold
	since int64 // mono ns
	held  bool  // the role is held because of it
}

// pendingRecord waits for the hooks before it becomes history.
type pendingRecord struct {
	term  uint64
	hooks int64 // mono ns at which the last OnPromote had returned; 0 unknown
	done  bool  // the hooks are through, or there are none
	looks int   // looks since then, waiting for the claimant's own stamp
}

// state is everything that a role's decisions depend on. It is a value: step
// gets one and returns another, and shares nothing with the one it got except
// what is never written again (exits, ring entries, policy).
type state struct {
	policy     *policy
	phase      phase
	why        string
	generation uint64
	segment    string
	workers    []worker
	control    controlWord

	owner    hold
	active   hold
	epoch    uint64
	seats    []seatView
	ring     []ringView
	led      leadership // who leads, term 0 if nobody does
	ledBy    string     // the worker that led last
	ledTerms [2]uint64  // of the last two leaders that we saw
	fencing  fencing    // whose end a claimant waits for
	refused  refusals   // what the hooks did not let stand

	shortLeads int   // leaderships in a row that were short
	silents    int   // members that did not beat at the last step
	idle       int64 // mono ns since when ready standbys wait and none would claim; 0: not so

	hooked   bool            // hooks have started
	told     role.Transition // what the hooks were promoted for; token 0: nothing
	asking   uint64          // term whose PrePromote is under way
	jobs     int             // hook jobs that have not reported
	failing  []int           // hooks whose OnPromote failed and will be repeated
	retries  int
	retryAt  int64
	sockets  bool  // the listeners are there
	socketsS int64 // mono ns at which missing ones are fetched from the workers; 0: not any more

	adopted   bool    // this supervisor found the role at work
	failovers []int64 // mono ns, within Per
	counted   uint64  // last term that the budget has seen
	recorded  uint64  // last term that is in the history
	since     int64   // mono ns at which this supervisor began to watch
	pending   *pendingRecord
	drill     *drillState
	change    *changeState
	roll      *rollState
	version   string // of the settings with which a process is started now
	reopening bool   // it stops in order to start again on a new segment
	rehooking bool   // the old hooks are being stopped
	nextHooks []NamedHooks
	// reloadFailed says why the config of the last reload is not the one at
	// work; empty: it is.
	reloadFailed string
	pause        pausing
	spared       uint64 // term whose end an operator has caused: it spends no budget
	ordered      uint64 // term whose worker was told to stop: whatever its end looks like
	lastEnd      leadEnd
	condemned    uint64 // term of a leader that was ended because it was ill or silent
	condemnedFor string // and what it lacked
	strangerAt   int64  // mono ns of the last warning about strangers on the socket
	drainBy      int64
	renewing     bool // doRenew has been asked for
	binding      bool // doBindSockets has been asked for
	killed       bool // everything at once
	last         *Record

	unhurried []string // what was said to be missing of the pace; never written, only replaced

	hookErrors []string // per hook, its last failure; never written, only replaced
	hookHangs  []int    // per hook, calls that did not return in time; the same
}

// policy is the part of a RoleConfig that decisions need. Never written.
type policy struct {
	RoleConfig
}

func (s state) clone() state {
	s.workers = slices.Clone(s.workers)
	s.failing = slices.Clone(s.failing)
	s.failovers = slices.Clone(s.failovers)
	if s.pending != nil {
		p := *s.pending
		s.pending = &p
	}
	if s.drill != nil {
		d := *s.drill
		s.drill = &d
	}
	if s.change != nil {
		c := *s.change
		s.change = &c
	}
	if s.roll != nil {
		r := *s.roll
		s.roll = &r
	}
	return s
}

func (s *state) byPID(pid uint32) int {
	if pid == 0 {
		return -1
	}
	for i := range s.workers {
		if s.workers[i].pid == int(pid) {
			return i
		}
	}
	return -1
}

// living is byPID without the processes that have ended.
func (s *state) living(pid uint32) int {
	if i := s.byPID(pid); i >= 0 && s.workers[i].lot != lotEnded {
		return i
	}
	return -1
}

func (s *state) nameOf(pid uint32) string {
	if i := s.byPID(pid); i >= 0 {
		return s.workers[i].name
	}
	for i := range s.workers {
		if pid != 0 && slices.Contains(s.workers[i].past, int(pid)) {
			return s.workers[i].name
		}
	}
	return ""
}

func (s *state) token(term uint64) role.Token { return role.MakeToken(s.generation, term) }

// indexOf is the place that pid has or had, -1 if it is nobody's.
func (s *state) indexOf(pid uint32) int {
	if i := s.byPID(pid); i >= 0 || pid == 0 {
		return i
	}
	return slices.IndexFunc(s.workers, func(w worker) bool { return slices.Contains(w.past, int(pid)) })
}

// processes counts the workers that have one.
func (s *state) processes() (n int) {
	for i := range s.workers {
		if s.workers[i].pid != 0 {
			n++
		}
	}
	return n
}

// nextDue is the earliest deadline (mono ns), or 0 if there is none.
func (s *state) nextDue() (due int64) {
	sooner := func(at int64) {
		if at != 0 && (due == 0 || at < due) {
			due = at
		}
	}
	for i := range s.workers {
		sooner(s.workers[i].due)
		sooner(s.workers[i].barred)
		sooner(s.workers[i].vitals.beatBy)
	}
	sooner(s.drainBy)
	sooner(s.retryAt)
	if s.drill != nil {
		sooner(s.drill.due)
	}
	sooner(s.socketsS)
	if s.control.mode == controlHeld || s.control.mode == controlPaused {
		sooner(s.control.until)
	}
	sooner(s.pause.until)
	if s.change != nil {
		sooner(s.change.by)
	}
	if s.roll != nil {
		sooner(s.roll.by)
		if s.phase < phaseRenewing { // where a rolling change is watched
			sooner(s.roll.trial.by)
		}
	}
	return due
}

// newState has the role's places, all of them empty.
func newState(p *policy, since int64) state {
	s := state{policy: p, since: since, version: p.launchPrint(), led: leadership{worker: -1}, control: controlWord{nominee: -1}, why: "no worker is ready yet"}
	for i := range p.Workers {
		s.workers = append(s.workers, worker{name: workerName(p.Name, i)})
	}
	return s
}

func workerName(role string, i int) string { return role + "-" + strconv.Itoa(i) }
