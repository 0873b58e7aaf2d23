//go:build linux

package proc

import "golang.org/x/sys/unix"

// Judge says what can be proven about id at this moment. It never blocks and
// is safe for concurrent use. The proof begins after Judge was called: a
// caller that loaded a shared word before may conclude from it.
func Judge(id Identity) Verdict {
	me, err := self()
	if err != nil || id.PID <= 0 {
		return Alive
	}
	if v, decided := id.foreign(me); decided {
		return v
	}
	if v := byStart(id); v == Gone {
		return Gone
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	switch err {
	case nil:
		defer unix.Close(fd)
		// The number may have passed to another process before the open.
		if byStart(id) == Gone || readable(fd) {
			return Gone
		}
	case unix.ESRCH:
		if absent(id.PID) {
			return Gone
		}
	case unix.ENOENT, unix.EINVAL:
		// A thread's id, unless this kernel has no pidfd_open at all.
		if tgid, _, err := readStatus(id.PID); err == nil && tgid != id.PID {
			return Gone
		}
	}
	return exiting(id.PID)
}

// byStart is Gone when nobody has the pid, or one who started at another time.
func byStart(id Identity) Verdict {
	st, err := readStat(id.PID, 0)
	if err != nil {
		if absent(id.PID) {
			return Gone
		}
		return Alive
	}
	if id.Start != 0 && st.start != id.Start {
		return Gone
	}
	return Alive
}

// readable reports whether a pidfd says that its whole thread group has ended.
func readable(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1 && p[0].Revents&unix.POLLIN != 0
}

// exiting is Exiting if every task of pid has ended or is past return.
func exiting(pid int) Verdict {
	v := openTasks(pid)
	if v == nil {
		return Alive
	}
	defer v.close()
	if v.exiting() {
		return Exiting
	}
	return Alive
}
