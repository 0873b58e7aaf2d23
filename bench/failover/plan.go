//go:build linux

package main

import (
	"fmt"
	"time"
)

// fault is what happens to the leader.
type fault int

const (
	crash      fault = iota // SIGKILL
	hang                    // SIGSTOP
	killed                  // SIGKILL, while it is stopped
	switchover              // asked to hand over
)

// scenario is one table: what is done to leaders of which size.
type scenario struct {
	name     string
	fault    fault
	size     int64 // bytes that each worker has loaded
	standbys int
	busy     bool // every processor has something else to do
	tick     time.Duration
	rounds   int
	once     bool // all rounds in one pass: to bring its workers up takes long, or what it shows is steady
	full     bool // only with FULL=1
}

const (
	miB = int64(1) << 20
	giB = int64(1) << 30
)

const (
	small = "crash, 10 MiB"
	large = "crash, 1 GiB"
	still = "kill of a stopped leader, 10 MiB"
)

func scenarios() []scenario {
	all := []scenario{
		{name: small, size: 10 * miB, standbys: 3, rounds: 60},
		{name: large, size: giB, standbys: 3, rounds: 20, once: true},
		{name: "switchover", fault: switchover, size: 10 * miB, standbys: 3, rounds: 60},
		{name: "crash, 256 MiB", size: 256 * miB, standbys: 3, rounds: 30, full: true},
		{name: "crash, 4 GiB", size: 4 * giB, standbys: 3, rounds: 10, full: true},
		{name: "crash, 10 MiB, 1 standby", size: 10 * miB, standbys: 1, rounds: 60, full: true},
		{name: "crash, 10 MiB, 10 standbys", size: 10 * miB, standbys: 10, rounds: 60, full: true},
		{name: "crash, 10 MiB, processors busy", size: 10 * miB, standbys: 3, busy: true, rounds: 60, full: true},
		{name: "crash, 1 GiB, processors busy", size: giB, standbys: 3, busy: true, rounds: 20, full: true},
	}
	all = append(all, scenario{name: still, fault: killed, size: 10 * miB, standbys: 3, rounds: 60, once: true})
	for _, tick := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		all = append(all, scenario{name: fmt.Sprintf("hang, tick %v", tick), fault: hang, size: 10 * miB, standbys: 3, tick: tick, rounds: 60, once: true})
	}
	return all
}

// row is one way to have a leader after the last.
type row struct {
	name, what string
	rig        func() rig
	solo       bool          // one worker that is started again, no standby
	rest       time.Duration // that a worker must have run before its supervisor starts it again at once
	in         func(scenario) bool
	more       func(scenario) bool // of these scenarios with FULL=1 only; nil: of none
}

// left says whether a run leaves the row out of a scenario that is in it.
func (r row) left(sc scenario, full bool) bool { return !full && r.more != nil && r.more(sc) }

const (
	flockGo   = "flock(2), Go"
	ourGone   = "standbyd, fence process, proof gone"
	ourExit   = "standbyd, fence process, proof exiting"
	ourToken  = "standbyd, fence token"
	libToken  = "coord alone, fence token"
	libFenced = "coord alone, fence process"
)

func isCrash(sc scenario) bool { return sc.fault == crash }
func isKill(sc scenario) bool  { return sc.fault == crash || sc.fault == killed }
func isHang(sc scenario) bool  { return sc.fault == hang || sc.fault == killed }
func isLarge(sc scenario) bool { return sc.size >= giB }
func isAny(scenario) bool      { return true }

func isHangOrLarge(sc scenario) bool { return isHang(sc) || isLarge(sc) }

// isFew is where not every combination of settings is told apart.
func isFew(sc scenario) bool { return sc.fault != crash || sc.full || sc.size > 10*miB }

func rows() []row {
	all := []row{
		{name: flockGo, what: "Every worker waits in flock(LOCK_EX); the kernel releases the lock when it closes the dead holder's files, after it has torn down its memory.", rig: inGo("flock"), in: isKill},
		{name: "OFD lock, Go", what: "The same with fcntl(F_OFD_SETLKW).", rig: inGo("ofd"), in: isCrash, more: isLarge},
		{name: "flock(2), C", what: "The same as flock in Go, without Go's runtime.", rig: inC("flock"), in: isCrash},
		{name: "OFD lock, C", what: "The same as the OFD lock in Go, without Go's runtime.", rig: inC("ofd"), in: isCrash, more: isLarge},
		{name: "robust mutex, C", what: "Every worker waits in pthread_mutex_lock on a robust process-shared mutex; the kernel hands it over before it tears down memory. At that moment only the thread that held it is surely dead: other threads of the process may still write.", rig: inC("robust"), in: isCrash},
	}
	our := func(name, what, fence, proof, scheduling string, in, more func(scenario) bool) {
		if scheduling != "normal" {
			name, what = name+", "+scheduling, "" // the report says it once for all
		}
		all = append(all, row{name: name, what: what, in: in, more: more, rig: func() rig {
			return &daemon{fence: fence, proof: proof, scheduling: scheduling}
		}})
	}
	for _, sched := range []string{"normal", "nice", "fifo"} {
		plain := sched == "normal"
		var hangs, aside, extra func(scenario) bool // where only FULL=1 measures it
		if !plain {
			hangs, aside, extra = isHang, isHangOrLarge, isAny
		}
		our(ourGone, "The next leads once the old process is gone, as a lead needs that binds or locks something exclusively.", "process", "gone", sched,
			func(sc scenario) bool { return plain || !isFew(sc) || sc.fault != crash }, hangs)
		our(ourExit, "The next leads once no user code of the old process can run any more, whatever its memory takes to be freed.", "process", "exiting", sched,
			func(sc scenario) bool { return sc.fault != switchover }, aside)
		our("standbyd, fence tree, proof gone", "As fence process, and everything that the old leader has started is gone, too.", "tree", "gone", sched,
			func(sc scenario) bool { return isCrash(sc) && !isFew(sc) }, extra)
		our("standbyd, fence tree, proof exiting", "The same, and no code of the old leader and of what it started can run.", "tree", "exiting", sched,
			func(sc scenario) bool { return isCrash(sc) && !isFew(sc) }, extra)
		our(ourToken, "The old leader's writes are refused by their token, so its death need not be proven.", "token", "gone", sched,
			func(sc scenario) bool { return sc.fault == crash || sc.fault == hang }, aside)
		our("standbyd, fence token, proof exiting", "The same; the proof asked for makes no difference under fence token, so this row shows the noise between two equal ones.", "token", "exiting", sched,
			func(sc scenario) bool { return isCrash(sc) && !isFew(sc) && plain }, isAny)
	}
	all = append(all,
		row{name: libToken, what: "The workers use package coord on a file (JoinFile); there is no supervisor at all. What a program gets from the library.", rig: inGo("library"), in: func(sc scenario) bool { return sc.fault == crash || sc.fault == hang }, more: isHangOrLarge},
		row{name: libFenced, what: "The same with fence process.", rig: inGo("library", fenceEnv+"=process"), in: func(sc scenario) bool { return sc.fault == crash || sc.fault == hang }, more: isHangOrLarge},
	)
	restarted := func(sc scenario) bool { return isCrash(sc) && sc.standbys == 3 && !sc.busy }
	const again = " There is no standby: the time is that of noticing, starting the program and loading its data."
	return append(all,
		row{name: "standbyd, 1 worker, restarted", what: "standbyd with workers = 1 starts it again." + again, solo: true, in: restarted, rig: func() rig {
			return &daemon{fence: "process", proof: "gone", scheduling: "normal"}
		}},
		row{name: "supervisord, restarted", what: "autorestart = true, startsecs = 0." + again, solo: true, rest: 100 * time.Millisecond, in: restarted, rig: supervisord},
		row{name: "runit, restarted", what: "runsv. Each worker has run for more than a second before it is killed; else runsv waits for that first." + again, solo: true, rest: 1200 * time.Millisecond, in: restarted, rig: runit},
		row{name: "s6, restarted", what: "s6-supervise. Each worker has run for more than a second before it is killed, for the same reason." + again, solo: true, rest: 1200 * time.Millisecond, in: restarted, rig: s6},
	)
}
