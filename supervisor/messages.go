package supervisor

import (
	"slices"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/internal/rolesock"
)

// input is everything that can reach a role's step. The set is sealed: what
// is not here cannot happen to a role. Inputs that name a worker go through
// workerTable first (word says into which column), then through settle; all
// others go through roleTable.
type input interface{ sealed() }

// reply is where the answer to a request goes. The channel has room for one
// answer, so that the role never waits for the asker. nil: nobody asked.
type reply[T any] chan<- answer[T]

type answer[T any] struct {
	value T
	err   error
}

// Inputs for one worker.
type (
	// inTurn: the worker may be started now; the turn is taken.
	inTurn struct{ index int }
	// inLaunched: the process exists and is recorded on disk.
	inLaunched struct {
		index, pid int
	}
	// inUnlaunched: there is no process. Jitter is in [0,1).
	inUnlaunched struct {
		index  int
		err    error
		jitter float64
	}
	// inEnded: the process is dead; nothing has been reaped or evicted.
	inEnded struct{ index, pid int }
	// inExited follows inEnded: evicted, group killed, last words kept, reaped.
	inExited struct {
		index, pid int
		exit       Exit
		jitter     float64
	}
	// inProbed: one try of a probe has ended; err is why it failed.
	inProbed struct {
		index, pid int
		kind       probeKind
		err        error
	}
)

// Inputs for the role.
type (
	// inHooked: the hooks have started.
	inHooked struct {
		gate bool
	}
	// inSeen is one look at the segment.
	inSeen struct {
		owner, active hold
		epoch         uint64
		seats         []seatView
		ring          []ringView // newest last; nil: as before
	}
	// inLost: the segment is damaged, or is no longer in its folder.
	inLost struct{ err error }
	// inRenewed: there is a new segment, or there cannot be one now.
	inRenewed struct {
		generation uint64
		segment    string
		err        error
	}
	// inSockets: the role's listeners are held, or err says which is not.
	inSockets struct {
		ok  bool
		err error
	}
	// inCalled: one hook call has ended.
	inCalled struct {
		hook   int
		moment hookMoment
		t      role.Transition
		err    error
		hung   bool // it did not return by its deadline
	}
	// inJob: a job of the hook queue is through.
	inJob struct {
		kind   hookMoment
		t      role.Transition
		failed []int // hooks that failed
		err    error // the first failure
		at     int64 // mono ns
	}
	// inReplay: a hook was restarted and wants its OnPromote again.
	inReplay struct{ hook int }
	// inHook: a hook's status has changed. The loop adds the status.
	inHook struct {
		hook   int
		status HookStatus
	}
	// inHit: the drill's fault is about to be caused, or could not be.
	inHit struct {
		term uint64
		zero int64 // mono ns
		err  error
	}
	// inClose asks for the orderly end; inKill for the end at once.
	inClose struct{}
	inKill  struct{}
	// inSwitchover and inFailover ask for another leader: to is a worker's
	// index, -1 for whoever is first in the order of candidates.
	inSwitchover struct {
		to    int
		reply reply[Record]
	}
	inFailover struct {
		to    int
		reply reply[Record]
	}
	// inRank asks whom a switchover would choose.
	inRank struct {
		to    int
		reply reply[Ranking]
	}
	// inPause stops what the role does by itself, for a while or, with 0, until
	// inResume.
	inPause struct {
		length time.Duration
		reply  reply[PauseStatus]
	}
	inResume struct{ reply reply[bool] } // answered with whether it was paused
	// inReload is a new config. Workers of another version are restarted one
	// by one. Hooks: they are replaced. Renew: all workers are restarted on a
	// new segment. The loop has prepared the rest before the step.
	inReload struct {
		policy       *policy
		config       RoleConfig
		user         identity
		version      string
		what         string // as the operator asked for it
		hooks, renew bool
		rolling      bool // workers are restarted for its own sake
		reply        reply[Rolled]
		was          identity // user at work; set by the loop
		failure      error    // it goes back to an earlier config, and why
	}
	// inUnchanged: a reload found that the role runs as the config says.
	inUnchanged struct{}
	// inAck frees a held role.
	inAck struct{ reply reply[struct{}] }
	// inDrill asks for a fault. hit is answered when it is caused, unless the
	// drill is refused; reply when somebody else leads and the hooks are through.
	inDrill struct {
		fault Fault
		force bool
		hit   reply[DrillHit]
		reply reply[Record]
	}
	// inByHand asks for workers to be started, stopped or restarted, and is
	// answered with whom that concerns.
	inByHand struct {
		verb  handVerb
		index int // of one worker, theLeader or allWorkers
		reply reply[[]int]
	}
	// inNotify: a process has written to the role's socket. line is the process,
	// those above it and the leader of its group; mainLine the same for the pid
	// that it named in MAINPID.
	inNotify struct {
		pid            int
		line, mainLine []int
		fields         map[string]string
	}
	// inFrozen: the supervisor did not run for so long.
	inFrozen struct{ gap time.Duration }
	// inSignal asks for a signal to a worker; index -1 means the leader.
	inSignal struct {
		index int
		sig   syscall.Signal
		reply reply[signalled]
	}
	// inDue: a deadline of the state has come.
	inDue struct{ jitter float64 }
)

// What reaches the loop and is turned into another input before the step: a
// hint to look at the segment (inSeen or inLost), and a datagram with the
// listeners that a worker hands back (inSockets).
type (
	inLook  struct{}
	inFiles struct{ message rolesock.Message }
)

type signalled struct {
	worker string
	pid    int
}

// seatView is a member of the segment as the step needs it.
type seatView struct {
	seat     int
	pid      uint32
	ready    bool
	racing   bool // would claim now
	waits    bool // for our consent to contend; not ready then
	bars     bool // wants no leadership by failover
	last     bool // goes after all others, says the segment
	watched  bool // reports progress
	priority int32
	lag      uint64
	joined   uint64
	beat     uint64 // epoch of its last beat
	ways     uint64 // by what deaths are noticed, and its pace: the Way bits of package shm
}

// ringView is one term of the segment's ring. Times are mono ns, 0 unknown.
type ringView struct {
	term      uint64
	pid       uint32
	reason    role.Reason
	ended     int64
	detected  int64
	claimed   int64
	fenced    int64
	activated int64
	retired   int64
}

// same tells whether two looks differ in nothing that a decision depends on:
// epochs and beats go on by themselves. What depends on the time alone comes
// as inDue.
func (in inSeen) same(other inSeen) bool {
	return in.owner == other.owner && in.active == other.active && in.ring == nil &&
		slices.EqualFunc(in.seats, other.seats, func(a, b seatView) bool {
			a.beat, b.beat = 0, 0
			return a == b
		})
}

func (inTurn) sealed()       {}
func (inLaunched) sealed()   {}
func (inUnlaunched) sealed() {}
func (inEnded) sealed()      {}
func (inExited) sealed()     {}
func (inByHand) sealed()     {}
func (inProbed) sealed()     {}
func (inNotify) sealed()     {}
func (inFrozen) sealed()     {}
func (inHooked) sealed()     {}
func (inSeen) sealed()       {}
func (inLost) sealed()       {}
func (inRenewed) sealed()    {}
func (inSockets) sealed()    {}
func (inCalled) sealed()     {}
func (inJob) sealed()        {}
func (inReplay) sealed()     {}
func (inHook) sealed()       {}
func (inHit) sealed()        {}
func (inClose) sealed()      {}
func (inKill) sealed()       {}
func (inSwitchover) sealed() {}
func (inFailover) sealed()   {}
func (inRank) sealed()       {}
func (inPause) sealed()      {}
func (inResume) sealed()     {}
func (inReload) sealed()     {}
func (inUnchanged) sealed()  {}
func (inAck) sealed()        {}
func (inDrill) sealed()      {}
func (inSignal) sealed()     {}
func (inDue) sealed()        {}
func (inLook) sealed()       {}
func (inFiles) sealed()      {}
