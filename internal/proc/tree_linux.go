//go:build linux

package proc

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Tree lists what is left of the processes that a dead one started: members of
// its process group, and processes whose environment holds every one of marks
// ("NAME=value", as they were at the exec of some ancestor). The process
// itself, the caller, and what has ended are left out. A process that another
// user owns, or that replaced its whole environment and left the group, is not
// found. ok is false if the process table could not be read.
func Tree(group int, marks []string) (found []Identity, ok bool) {
	pids, err := PIDs()
	if err != nil {
		return nil, false
	}
	me := os.Getpid()
	env := environs{buf: make([]byte, 64<<10), marks: marks}
	for _, pid := range pids {
		if pid == me || pid == group || !inGroupOf(pid, group) && !env.marked(pid) {
			continue
		}
		if id, err := Of(pid); err == nil && Judge(id) != Gone {
			found = append(found, id)
		}
	}
	return found, true
}

func inGroupOf(pid, group int) bool {
	g, err := unix.Getpgid(pid)
	return err == nil && g == group
}

// environs reads environments. A whole process table is read while a role has
// no leader, so it makes no system call more than it needs: Environ would
// make ten for each process.
type environs struct {
	buf   []byte
	marks []string
}

// marked reports whether pid has every mark.
func (e *environs) marked(pid int) bool {
	if len(e.marks) == 0 {
		return false
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/environ", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	n := 0
	for {
		if n == len(e.buf) {
			e.buf = append(e.buf, make([]byte, len(e.buf))...)
		}
		m, err := unix.Read(fd, e.buf[n:])
		if err == unix.EINTR {
			continue
		}
		if n += max(m, 0); err != nil || m == 0 {
			break
		}
	}
	for _, m := range e.marks {
		if !hasVar(e.buf[:n], m) {
			return false
		}
	}
	return true
}

// hasVar reports whether one of the strings in env, each with a zero byte
// behind it, is v.
func hasVar(env []byte, v string) bool {
	for len(env) > 0 {
		one := env
		if i := bytes.IndexByte(env, 0); i >= 0 {
			one, env = env[:i], env[i+1:]
		} else {
			env = nil
		}
		if string(one) == v {
			return true
		}
	}
	return false
}
