//go:build linux

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// self is read once: neither the boot nor our pid namespace or start changes.
var self = sync.OnceValues(func() (Identity, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Identity{}, fmt.Errorf("identify this process: %w", err)
	}
	h := fnv.New64a()
	h.Write(bytes.TrimSpace(boot))
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		return Identity{}, fmt.Errorf("identify this process: stat /proc/self/ns/pid: %w", err)
	}
	pid := os.Getpid()
	st, err := readStat(pid, 0)
	if err != nil {
		return Identity{}, fmt.Errorf("identify this process: %w", err)
	}
	return Identity{PID: pid, Start: st.start, Boot: h.Sum64() | 1, PIDNS: ns.Ino}, nil
})

// Self is the identity of the calling process. Safe for concurrent use.
func Self() (Identity, error) { return self() }

// Of is the identity of the process that has pid now, in the caller's own pid
// namespace. It is ErrGone if there is none, or if pid is a thread's.
func Of(pid int) (Identity, error) {
	me, err := self()
	if err != nil {
		return Identity{}, err
	}
	st, err := readStat(pid, 0)
	if err != nil {
		return Identity{}, fmt.Errorf("identify pid %d: %w", pid, ErrGone)
	}
	if tgid, _, err := readStatus(pid); err == nil && tgid != pid {
		return Identity{}, fmt.Errorf("identify pid %d: a thread of pid %d: %w", pid, tgid, ErrGone)
	}
	return Identity{PID: pid, Start: st.start, Boot: me.Boot, PIDNS: me.PIDNS}, nil
}

// stat is what /proc/PID/stat says, as far as it matters here.
type stat struct {
	state   byte
	parent  int
	flags   uint64
	threads int
	start   uint64
	exit    int // exit_code: as of wait(2)
}

// pfExiting is PF_EXITING of include/linux/sched.h: set when a task enters
// do_exit, from which it never returns to user code.
const pfExiting = 0x4

func (s stat) ended() bool {
	return s.state == 'Z' || s.state == 'X' || s.state == 'x' || s.flags&pfExiting != 0
}

// over: the process as a whole ends, by a signal or by exit_group(2) with a
// status other than 0, as the exit_code of proc(5) says while the group ends. A
// stopped group shows its signal there, and a status of 0 shows nothing: such a
// process is known to be gone only when it is.
func (s stat) over() bool {
	switch unix.Signal(s.exit & 0x7f) {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return false
	}
	return s.exit != 0
}

var errStat = errors.New("unexpected content")

// readStat reads /proc/PID/stat, or that of one task if tid is not 0.
func readStat(pid, tid int) (stat, error) {
	path := "/proc/" + strconv.Itoa(pid)
	if tid != 0 {
		path += "/task/" + strconv.Itoa(tid)
	}
	b, err := os.ReadFile(path + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// ThreadEnded reports whether a thread of a process is past return, or is no
// thread of that process any more. What cannot be told is false.
func ThreadEnded(pid, tid int) bool {
	st, err := readStat(pid, tid)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	return st.ended()
}

// parseStat splits after the LAST ')': the command's name may hold anything,
// "a) R 1 (b" included.
func parseStat(b []byte) (stat, error) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return stat{}, errStat
	}
	var st stat
	b = b[i+1:]
	// Fields are numbered as in proc(5): the first one here is the third.
	for field := 3; field <= 22; field++ {
		b = bytes.TrimLeft(b, " ")
		end := bytes.IndexAny(b, " \n")
		if end < 0 {
			end = len(b)
		}
		f, ok := b[:end], true
		b = b[end:]
		var n uint64
		switch field {
		case 3:
			ok = len(f) == 1
			if ok {
				st.state = f[0]
			}
		case 4:
			n, ok = number(f)
			st.parent = int(n)
		case 9:
			st.flags, ok = number(f)
		case 20:
			n, ok = number(f)
			st.threads = int(n)
		case 22:
			st.start, ok = number(f)
		}
		if !ok {
			return stat{}, errStat
		}
	}
	if st.start == 0 {
		return stat{}, errStat
	}
	// The 52nd field is the last one; 0 for who may not see it.
	rest := bytes.TrimRight(b, " \n")
	if n, ok := number(rest[bytes.LastIndexByte(rest, ' ')+1:]); ok {
		st.exit = int(n)
	}
	return st, nil
}

// readStatus reads the thread group and the number of threads.
func readStatus(pid int) (tgid, threads int, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0, err
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("Tgid:")); ok {
			tgid, err = strconv.Atoi(string(bytes.TrimSpace(v)))
		} else if v, ok := bytes.CutPrefix(line, []byte("Threads:")); ok {
			threads, err = strconv.Atoi(string(bytes.TrimSpace(v)))
		}
		if err != nil {
			return 0, 0, errStat
		}
	}
	if tgid == 0 {
		return 0, 0, errStat
	}
	return tgid, threads, nil
}

// absent reports whether the kernel itself says that no process has pid. A
// missing /proc entry alone proves nothing: hidepid hides, chroots lack it.
func absent(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
