//go:build linux

package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/proc"
)

// environOf is the environment with which a process was started; empty if it
// may not be read.
func environOf(pid int) map[string]string {
	env := map[string]string{}
	for _, kv := range proc.Environ(pid) {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	return env
}

// strays finds processes that were started as workers of a role (or by one)
// and belong to none of the known workers: they are neither in its process
// group nor below it. worker narrows it to what came from that one; empty
// means any.
func strays(roleDir, worker string, known func(proc.Identity) bool) []proc.Identity {
	pids, err := proc.PIDs()
	if err != nil {
		return nil
	}
	ours := ancestors(os.Getpid())
	var found []proc.Identity
	for _, pid := range pids {
		if ours[pid] {
			continue
		}
		env := environOf(pid)
		if filepath.Dir(env["STANDBYD_SEGMENT"]) != roleDir || worker != "" && env["STANDBYD_WORKER"] != worker {
			continue
		}
		id, err := proc.Of(pid)
		if err != nil || belongs(pid, known) {
			continue
		}
		found = append(found, id)
	}
	return found
}

// descends tells whether a stray was started by that worker, or by one of its
// descendants, also if all in between have ended: it carries the worker's pid,
// and started after it, as nothing did that an earlier process with this pid
// has left.
func descends(id, worker proc.Identity, name, segment string) bool {
	env := environOf(id.PID)
	return env["STANDBYD_PID"] == strconv.Itoa(worker.PID) && env["STANDBYD_WORKER"] == name && env["STANDBYD_SEGMENT"] == segment &&
		id.Boot == worker.Boot && id.PIDNS == worker.PIDNS && id.Start >= worker.Start
}

// belongs: the process, the leader of its group, or one of its ancestors is a
// known worker.
func belongs(pid int, known func(proc.Identity) bool) bool {
	lines := ancestors(pid)
	if group, err := unix.Getpgid(pid); err == nil {
		lines[group] = true
	}
	for p := range lines {
		if id, err := proc.Of(p); err == nil && known(id) {
			return true
		}
	}
	return false
}

// ancestors is the process and those above it, without pid 1.
func ancestors(pid int) map[int]bool {
	line := map[int]bool{}
	for pid > 1 && !line[pid] {
		line[pid] = true
		pid, _ = proc.Parent(pid) // 0 ends it
	}
	return line
}
