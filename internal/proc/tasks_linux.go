//go:build linux

package proc

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"
)

// taskView looks at the tasks of one process. The descriptors that it holds
// belong to the process that had the pid when they were opened: once it is
// reaped they show nothing, whoever has the pid then. Not safe for concurrent
// use.
type taskView struct {
	dir  int // /proc/PID/task
	stat int // /proc/PID/stat

	first, second []int
	witness       int // a task that was not past return at the last look; 0 none
	buf           [4096]byte
}

// openTasks is nil if the process table does not show pid.
func openTasks(pid int) *taskView {
	path := "/proc/" + strconv.Itoa(pid)
	dir, err := unix.Open(path+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	stat, err := unix.Open(path+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(dir)
		return nil
	}
	return &taskView{dir: dir, stat: stat}
}

func (v *taskView) close() {
	unix.Close(v.dir)
	unix.Close(v.stat)
}

// exiting reports whether every task of the process has ended or is past
// return. The order of the steps is the proof:
//
//	L1  a listing of the tasks
//	L2  each of them: dead, or PF_EXITING in its flags
//	L3  the process as a whole ends (see stat.over), and the kernel's count of its tasks
//	L4  a second listing: nobody who is not in the first, and as many as the count
//	L5  each of them again: dead, or PF_EXITING in its flags
//
// From L3 on no task makes another one: fork and exec fail once the group ends.
// So the tasks of L4 are some of those that L3 counted, and if they are as many,
// all of them; and L5 looks at each. One listing alone proves nothing: it ends
// early if the task that it stands on is reaped meanwhile (next_tid in
// fs/proc/base.c).
//
// Without L3 a process that executes a program from another thread than the
// main one looks the same for a moment: that thread ends all others and then
// takes the main one's id over (de_thread in fs/exec.c). L1 and L2 guard what L3
// cannot tell: a main thread that alone has called exit(2), not exit_group(2),
// with a status other than 0, while the others go on.
func (v *taskView) exiting() bool {
	if v.witness != 0 {
		// Most looks while a process dies are too early; this one is short.
		if there, ended := v.task(v.witness); there && !ended {
			return false
		}
		v.witness = 0
	}
	var ok bool
	if v.first, ok = v.list(v.first); !ok || len(v.first) == 0 {
		return false
	}
	for i, tid := range v.first {
		switch there, ended := v.task(tid); {
		case !there:
			v.first[i] = 0 // in the second listing its number is another's
		case !ended:
			v.witness = tid
			return false
		}
	}
	st, err := v.read(v.stat)
	if err != nil || !st.over() {
		return false
	}
	if v.second, ok = v.list(v.second); !ok || len(v.second) != st.threads {
		return false
	}
	for _, tid := range v.second {
		if !contains(v.first, tid) {
			return false
		}
		if there, ended := v.task(tid); there && !ended {
			return false
		}
	}
	return true
}

// task looks whether one task is there and past return.
func (v *taskView) task(tid int) (there, ended bool) {
	fd, err := unix.Openat(v.dir, strconv.Itoa(tid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err != unix.ENOENT && err != unix.ESRCH, false
	}
	st, err := v.read(fd)
	unix.Close(fd)
	if err != nil {
		return err != unix.ESRCH, false
	}
	return true, st.ended()
}

// read parses the stat file behind fd from its beginning.
func (v *taskView) read(fd int) (stat, error) {
	n, err := unix.Pread(fd, v.buf[:], 0)
	if err != nil {
		return stat{}, err
	}
	return parseStat(v.buf[:n])
}

// list appends the ids of the tasks to tids[:0].
func (v *taskView) list(tids []int) ([]int, bool) {
	tids = tids[:0]
	if _, err := unix.Seek(v.dir, 0, 0); err != nil {
		return tids, false
	}
	for {
		n, err := unix.Getdents(v.dir, v.buf[:])
		if err != nil {
			return tids, false
		}
		if n == 0 {
			return tids, true
		}
		for b := v.buf[:n]; len(b) >= direntName; {
			// struct linux_dirent64: inode, offset, length, type, name
			size := int(binary.NativeEndian.Uint16(b[16:]))
			if size < direntName || size > len(b) {
				return tids, false
			}
			name := b[direntName:size]
			if i := bytes.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			b = b[size:]
			if name[0] == '.' {
				continue
			}
			tid, ok := number(name)
			if !ok {
				return tids, false
			}
			tids = append(tids, int(tid))
		}
	}
}

// direntName is where the name of a directory entry begins.
const direntName = 19

// number parses decimal digits and nothing else.
func number(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<59 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, len(b) > 0
}

func contains(tids []int, tid int) bool {
	for _, t := range tids {
		if t == tid {
			return true
		}
	}
	return false
}
