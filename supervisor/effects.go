package supervisor

import (
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord/role"
)

// effect is everything that a step can ask the loop to do. The set is sealed.
// The loop performs the effects of one step in the order in which they are
// returned; what an effect brings about comes back as an input.
//
// Orders that matter, all of them made by step:
//
//	doControl(closed)  before  any doSignal of a shutdown
//	doControl(nominee) before  the doKillGroup of a forced failover
//	doJob(demote T)    before  doJob(pre-promote or promote T+1)
//	doControl(granted) after   the pre-promote job of that term has reported
//	doRelease          before  the doLaunch that follows it
//	doQueue            before  the doLaunch that its turn allows
type effect interface{ performed() }

type (
	// doQueue asks for a turn among the processes that start, over all roles:
	// inTurn when it is there. It is used up by the doLaunch that follows, or
	// given back by doYield.
	doQueue struct{ index int }
	doYield struct{}
	// doLaunch starts a process: inLaunched or inUnlaunched, at once. The
	// process is listed on disk before it executes the worker's program.
	doLaunch struct{ index int }
	// doBury does, in this order: stamp the evidence, evict from the owner
	// word, retire from the active word (unless the fence is the tree), kill
	// the process group while the zombie pins its number, keep the last words,
	// reap. inExited follows.
	// What is known of the death goes to the worker's death history before that.
	doBury struct {
		index  int
		cause  string // "": as the exit says
		ill    bool   // the supervisor has ended it for its health or its watchdog
		led    bool
		uptime time.Duration
	}
	// doRelease gives back what was acquired for the worker's last process and
	// takes it off the list on disk.
	doRelease struct{ index int }
	// doSignal sends to the worker's process; doKillGroup SIGKILL to its group.
	doSignal struct {
		index int
		sig   syscall.Signal
		reply reply[signalled]
	}
	doKillGroup struct{ index int }
	// doProbe ends the probe of the worker's present process and begins another
	// one, or none: inProbed for each try.
	doProbe struct {
		index int
		kind  probeKind
	}
	// doAdmit lets the member in that seat contend, if it still is pid.
	doAdmit struct {
		seat int
		pid  uint32
	}
	// doList writes the list of processes anew, for the next supervisor.
	doList struct{}
	// doHit takes the time and causes the drill's fault: by a signal, or by an
	// order in the segment that package coord obeys. inHit follows.
	doHit struct {
		index int
		term  uint64
		fault Fault
	}
	// doLast says in the segment that the member goes after all others, or not.
	doLast struct {
		seat int
		pid  uint32
		on   bool
	}
	// doUnorder takes the order back.
	doUnorder struct{}
	// doControl writes the control word, which wakes every member.
	doControl struct{ word controlWord }
	// doJob appends to the hook queue. A demote or a stop cuts short a promote
	// that is under way. inCalled per call and one inJob follow.
	doJob struct {
		kind hookMoment
		t    role.Transition
		only []int // these hooks, nil for all
	}
	// doRenew replaces the segment by one of the next generation: inRenewed.
	doRenew struct{}
	// doFetchSockets takes missing listeners from the workers' own tables,
	// doBindSockets binds what is missing: inSockets.
	doFetchSockets struct{}
	doBindSockets  struct{}
	// doReload goes back to an earlier config: inReload.
	doReload struct{ in inReload }
	// doHire starts the hooks of the new config: inHooked.
	doHire struct{}
	// doRecord appends to the history.
	doRecord struct{ record Record }
	// doEmit publishes an event; the loop sets its ID, time and role.
	doEmit struct{ event Event }
	// doAnswer gives a request its answer.
	doAnswer struct{ send func() }
	// doClear removes what the role has in the runtime folder and ends the loop.
	doClear struct{}
)

func (doQueue) performed()        {}
func (doYield) performed()        {}
func (doLaunch) performed()       {}
func (doBury) performed()         {}
func (doRelease) performed()      {}
func (doSignal) performed()       {}
func (doKillGroup) performed()    {}
func (doProbe) performed()        {}
func (doAdmit) performed()        {}
func (doList) performed()         {}
func (doHit) performed()          {}
func (doLast) performed()         {}
func (doUnorder) performed()      {}
func (doControl) performed()      {}
func (doJob) performed()          {}
func (doRenew) performed()        {}
func (doFetchSockets) performed() {}
func (doBindSockets) performed()  {}
func (doHire) performed()         {}
func (doReload) performed()       {}
func (doRecord) performed()       {}
func (doEmit) performed()         {}
func (doAnswer) performed()       {}
func (doClear) performed()        {}
