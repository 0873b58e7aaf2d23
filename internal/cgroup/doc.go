// Package cgroup makes a cgroup v2 for each process that a supervisor starts,
// below the one that the supervisor itself is in:
//
//	OWN                      the supervisor's own cgroup; it is systemd's, a container's, or the root
//	OWN/supervisor           the supervisor, if it had to leave OWN so that limits work below it
//	OWN/standbyd-ID          its home; ID stands for the runtime folder, so that its successor finds it
//	OWN/standbyd-ID/ROLE/... one for each life of a worker
//
// A supervisor that was started in a cgroup called "supervisor" (systemd's
// DelegateSubgroup=supervisor) takes the one above for OWN.
//
// Limits need controllers that the machine's boot has given to cgroup v2 and
// whoever made OWN has passed on. The kernel wants no process in a cgroup that
// passes controllers on, except in the root: so a supervisor that is alone in
// OWN moves itself aside, and is moved back by Close. Processes of others are
// never moved.
//
// The mount is found in /proc/self/mountinfo, also where v2 stands beside v1
// (/sys/fs/cgroup/unified). On other systems than Linux there are none: every
// function says ErrNone.
package cgroup

import "errors"

// ErrNone: there is no cgroup v2 file system here, or not for this process.
var ErrNone = errors.New("no cgroup v2 here")

// ErrController: a limit needs a controller that is not available.
var ErrController = errors.New("controller not available")

// Limits of one cgroup; 0 is no limit.
type Limits struct {
	Memory int64 // bytes
	CPU    int   // percent of one CPU
	PIDs   int   // processes and threads
}

// Controllers that the limits need.
func (l Limits) Controllers() (names []string) {
	if l.Memory != 0 {
		names = append(names, "memory")
	}
	if l.CPU != 0 {
		names = append(names, "cpu")
	}
	if l.PIDs != 0 {
		names = append(names, "pids")
	}
	return names
}
