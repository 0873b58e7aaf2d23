package supervisor

import "time"

// Config says what one Supervisor runs. The zero value is not usable: New
// wants at least RuntimeDir, StateDir and one role. New copies it; later
// changes to the caller's value have no effect.
type Config struct {
	// RuntimeDir holds what lives as long as the machine runs: segments,
	// sockets, FIFOs. Must be absolute, on a local file system, best on tmpfs.
	RuntimeDir string
	// StateDir holds what outlives a reboot: generations, history, logs.
	StateDir string
	// Roles in the order in which status shows them.
	Roles []RoleConfig
	// Subreaper makes this process the reaper of orphaned descendants of its
	// workers. Process-wide, so only for a program that is nothing else.
	Subreaper bool
	// Cgroups says whether each worker gets a cgroup v2 of its own, below the
	// supervisor's: by it everything that the worker started is found and
	// ended, and limits are set. Empty means CgroupsAuto.
	Cgroups CgroupMode
	// OwnCgroup lets Run move this process into a cgroup below its own, and
	// back at its end, where limits need that. Process-wide, so only for a
	// program that is nothing else.
	OwnCgroup bool
	// Env is the environment that workers inherit, before a role's own Env.
	// nil means a small allow-list of os.Environ (PATH, HOME, LANG, TZ, ...).
	Env []string
	// Version is shown in Snapshot. Empty means "devel".
	Version string
	// Sockets exist already: listeners that they fit use them and bind nothing.
	// What no listener wants is closed, with a warning.
	Sockets []Socket
	// ConfigFile is shown to a second instance that finds this one running.
	ConfigFile string
	// Wait makes Run wait while another supervisor works with these folders,
	// and then take over from it, instead of failing.
	Wait bool
}

// Preempt says when a candidate may take the lease from a healthy leader.
type Preempt string

const (
	PreemptSticky    Preempt = "sticky"     // never
	PreemptLowestPID Preempt = "lowest-pid" // for a lower pid
	PreemptPriority  Preempt = "priority"   // for a strictly higher priority
)

// Proof says how sure a claimant must be that its predecessor is dead.
type Proof string

const (
	ProofGone    Proof = "gone"    // memory, files, ports and locks are released
	ProofExiting Proof = "exiting" // no user code can run any more
)

// Fence says what is done to a predecessor before the next leader leads.
type Fence string

const (
	FenceProcess Fence = "process" // its process is killed and proven dead
	FenceTree    Fence = "tree"    // and its whole process tree
	FenceToken   Fence = "token"   // nothing: Check and the token guard
)

// Scheduling says how the threads of a worker that wait for a leader's end and
// beat are scheduled. The worker's other threads are left as they are.
type Scheduling string

const (
	SchedulingNormal Scheduling = "normal"
	SchedulingNice   Scheduling = "nice" // nice -20
	SchedulingFIFO   Scheduling = "fifo" // SCHED_FIFO
)

// Restart says when a worker that ended is started again.
type Restart string

const (
	RestartAlways    Restart = "always"
	RestartOnFailure Restart = "on-failure" // not after exit status 0
	RestartNever     Restart = "never"
)

// RoleConfig describes one role. DefaultRole has the default of every field
// that has one; durations of zero are taken as they are, not as "default".
type RoleConfig struct {
	Name    string   // letters, digits, '-', '_'; at most 64 bytes; ends in no "-DIGITS"
	Command []string // argv; Command[0] must be absolute or found in PATH
	Dir     string   // working directory; absolute
	Env     map[string]string
	PassEnv []string // variables of the supervisor's own environment that workers get too; "NAME*" means all that begin so
	User    string   // name or number; empty: the supervisor's own
	Group   string
	Workers int // 1 to 60

	Tick    time.Duration
	Grace   int // epochs a leader may be behind before it counts as hung
	Preempt Preempt
	Proof   Proof
	Fence   Fence
	Payload int // bytes, 0 to 4096
	// Scheduling is a wish: where it is not permitted, status says so.
	Scheduling Scheduling

	Restart         Restart
	RestartOn       []string      // exit statuses and signals ("3", "HUP") after which it is, whatever Restart says
	NoRestartOn     []string      // the same for: it is not
	RestartDelay    time.Duration // first back-off, doubled with each failure in a row, with jitter
	RestartMaxDelay time.Duration
	Burst           int           // ends within BurstPer before the worker counts as failed
	BurstPer        time.Duration //
	CoolDown        time.Duration // after which a failed worker, or a held role, is tried again

	// Ready is what a worker must show before it counts as ready and may
	// contend. Without it a member says so in its seat, and a program that takes
	// no seat by READY=1.
	Ready Probe
	// Health is asked of a worker that is ready. One that fails is ended and
	// started again, if another one is in health; a leader, if a standby is.
	Health   Probe
	Watchdog time.Duration // a worker that says no WATCHDOG=1 for this long is killed; 0: off

	StartTimeout    time.Duration // from exec to ready
	StopTimeout     time.Duration // from StopSignal to SIGKILL
	StopSignal      string        // "TERM", "INT", ...
	DrainTimeout    time.Duration // from the cancel of lead's context to the worker's own exit
	FenceTimeout    time.Duration // waiting for the proof of death before the role is held
	ProgressTimeout time.Duration // without Pulse or a passing check; counts only if one is used

	Failovers int // leaders that may die within Per before the role is held
	Per       time.Duration
	Probation time.Duration // a leader that fails within it is tried last

	Confine Confinement

	WorkerOptions map[int]WorkerOptions // by index; a missing index has the zero value
	Listen        []ListenConfig

	// Hooks are told of the role's transitions, in this order. May be empty.
	Hooks []NamedHooks
	// HookTimeout is each hook call's deadline. HookFailure says what a failed
	// OnPromote costs: "keep" leaves the leader, "demote" makes it resign.
	HookTimeout time.Duration
	HookFailure string

	LogMaxBytes int64         // size at which a worker's log is rotated
	LogMaxAge   time.Duration // age of its first line at which it is rotated; 0 never
	LogKeep     int           // rotated files kept beside the current one
	LogCompress bool          // rotated files are compressed with gzip
}

// WorkerOptions sets one worker apart from the others of its role.
type WorkerOptions struct {
	Priority   int // higher goes first
	NoFailover bool
}

// ListenConfig is a socket that the supervisor binds, holds and passes to
// every worker of the role.
type ListenConfig struct {
	Name    string // unique within the role
	Network string // "tcp", "udp" or "unix"; empty: "unix" if Address starts with '/', else "tcp"
	Address string
}

// DefaultRole returns a RoleConfig with every default that docs/config.md
// lists. Name, Command and Dir are left empty.
func DefaultRole() RoleConfig {
	return RoleConfig{
		Workers: 3,
		Tick:    100 * time.Millisecond, Grace: 10,
		Preempt: PreemptSticky, Proof: ProofGone, Fence: FenceProcess,
		Payload: 48, Scheduling: SchedulingNormal,
		Restart:      RestartAlways,
		NoRestartOn:  []string{"125"},
		RestartDelay: 100 * time.Millisecond, RestartMaxDelay: 30 * time.Second,
		Burst: 10, BurstPer: time.Minute, CoolDown: time.Minute,
		Ready:        Probe{Interval: time.Second, Timeout: time.Second, Threshold: 1},
		Health:       Probe{Interval: 5 * time.Second, Timeout: 2 * time.Second, Threshold: 3},
		StartTimeout: 30 * time.Second, StopTimeout: 10 * time.Second, StopSignal: "TERM",
		DrainTimeout: 5 * time.Second, FenceTimeout: 10 * time.Second,
		Failovers: 5, Per: time.Minute, Probation: 10 * time.Second,
		HookTimeout: 5 * time.Second, HookFailure: "keep",
		LogMaxBytes: 10 << 20, LogKeep: 5, LogCompress: true,
	}
}
