//go:build unix

// Package launch starts a process, watches it, and keeps its number pinned
// until the caller has drawn its conclusions from its end.
//
// A process that must not run before its pid is on record is started through a
// stage: this program executes itself under the name "standbyd-stage", waits
// at a gate, and becomes the wanted program when the gate is opened. If the
// parent dies before that, the stage ends too, so that no unlisted process can
// come to be. The stage also does what fork and exec cannot: umask, the
// process's own pid in LISTEN_PID, and an error that names the step.
//
// On Linux the end of a process is an event of the runtime's poller (a pidfd),
// without a thread per process, and leaves a zombie until Reap. Elsewhere, and
// where pidfds are missing, a goroutine waits, and other systems than Linux
// reap before Done.
//
// No signal is sent when the parent dies later, and nothing is waited for but
// the processes that this package started.
package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/standbyd/standbyd/internal/launch/stage"
	"github.com/standbyd/standbyd/internal/proc"
)

// Credential is the user that a process runs as.
type Credential = stage.Credential

// Spec says what to start. Files in it stay the caller's and may be closed as
// soon as Start has returned.
type Spec struct {
	Path string   // of the program; a relative one is looked for from Dir
	Args []string // with argv[0]; empty means Path alone
	// Env is the whole environment. Start adds what tells of Listeners and
	// Segment, see Environ, and removes what it already says about them.
	Env []string
	Dir string // working directory; empty keeps the parent's
	// Credential changes the user; nil keeps the parent's, and so does the
	// parent's own if it is not root.
	Credential *Credential
	// Umask is set before exec, -1 keeps the parent's. Needs Staged.
	Umask int
	// Stdout is descriptor 1 and 2; nil means /dev/null, as for descriptor 0.
	Stdout *os.File
	// Listeners become descriptors 3, 4, ...; ListenNames has a name for each.
	Listeners   []*os.File
	ListenNames []string
	// Segment is the descriptor after them; nil for none.
	Segment *os.File
	// Cgroup is the folder of the cgroup v2 in which the process is born; empty
	// keeps the parent's.
	Cgroup string
	// Settings are niceness, limits and the like. Need Staged.
	Settings Settings
	// Ready is one more file, as the descriptor ReadyFD: beyond all others.
	Ready   *os.File
	ReadyFD int
	// Staged makes the process wait for Release; Stage must have been called.
	// Without it the program runs at once, LISTEN_PID is not set,
	// and descriptors that this process inherited without close-on-exec are
	// passed on.
	Staged bool
}

// Error says which step of a start failed. It unwraps to the system's error.
type Error struct {
	Path string
	// Step is one of: spec, fork, cgroup, stage, oom_score_adj, nice, limit, dir,
	// groups, group, user, no_new_privs, exec.
	Step   string
	On     string // what the step was attempted on, if it is not Path
	Err    error
	Advice string // what is behind the error; may be empty
}

func (e *Error) Error() string {
	step := e.Step
	switch e.Step {
	case "dir":
		step = "enter the working directory"
	case "groups":
		step = "set the supplementary groups"
	case "group":
		step = "change to group"
	case "user":
		step = "change to user"
	case "cgroup":
		step = "start it in the cgroup"
	case "nice":
		step = "set the niceness to"
	case "oom_score_adj":
		step = "set oom_score_adj to"
	case "limit":
		step = "set the limit"
	case "no_new_privs":
		step = "set no_new_privs"
	}
	if e.On != "" {
		step += " " + e.On
	}
	text := fmt.Sprintf("start %s: %s: %v", e.Path, step, e.Err)
	if e.Advice != "" {
		text += " (" + e.Advice + ")"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// These can be returned by the methods of Process.
var (
	// ErrRunning: Reap was called before the process ended.
	ErrRunning = errors.New("still running")
	// ErrReaped: the process's number may belong to another one by now.
	ErrReaped = errors.New("already reaped")
	// ErrNotStaged: Release of a process that does not wait at a gate, or no more.
	ErrNotStaged = errors.New("not waiting at the gate")
)

// Status is how a process ended.
type Status struct {
	Code   int            // exit status; -1 if a signal ended it, or if it is not known
	Signal syscall.Signal // 0 if it exited
	Known  bool           // false if nobody can tell any more
}

func statusOf(ws syscall.WaitStatus) Status {
	if ws.Signaled() {
		return Status{Code: -1, Signal: ws.Signal(), Known: true}
	}
	return Status{Code: ws.ExitStatus(), Known: true}
}

func (s Status) String() string {
	switch {
	case !s.Known:
		return "ended, nobody knows how"
	case s.Signal != 0:
		return "killed by " + s.Signal.String()
	}
	return fmt.Sprintf("exit status %d", s.Code)
}

// Start starts a process in a group of its own. With Staged it waits at the
// gate until Release; without, it runs the program already. An error is an
// *Error, and there is no process then.
func Start(spec Spec) (*Process, error) {
	if err := spec.check(); err != nil {
		return nil, &Error{Path: spec.Path, Step: "spec", Err: err}
	}
	files, err := spec.descriptors()
	if err != nil {
		return nil, &Error{Path: spec.Path, Step: "fork", Err: err}
	}
	defer files.close()
	if spec.Staged {
		return startStaged(spec, files)
	}
	return startDirect(spec, files)
}

func (spec *Spec) check() error {
	if spec.Path == "" {
		return errors.New("no program is named")
	}
	if len(spec.Args) == 0 {
		spec.Args = []string{spec.Path}
	}
	if len(spec.ListenNames) != len(spec.Listeners) {
		return fmt.Errorf("%d listeners have %d names", len(spec.Listeners), len(spec.ListenNames))
	}
	for _, name := range spec.ListenNames {
		if strings.ContainsAny(name, ":,=") {
			return fmt.Errorf("listener name %q has one of the characters : , =", name)
		}
	}
	if spec.Umask >= 0 && !spec.Staged {
		return errors.New("umask needs the launch stage: call Stage first in main")
	}
	if !spec.Settings.none() && !spec.Staged {
		return errors.New("niceness, limits and the like need the launch stage: call Stage first in main")
	}
	if err := spec.Settings.check(); err != nil {
		return err
	}
	for _, list := range [][]string{{spec.Path, spec.Dir}, spec.Args} {
		for _, s := range list {
			if strings.ContainsRune(s, 0) {
				return fmt.Errorf("%q contains a zero byte", s)
			}
		}
	}
	for _, kv := range spec.Env {
		if strings.ContainsRune(kv, 0) { // its value may be a secret
			name, _, _ := strings.Cut(kv, "=")
			return fmt.Errorf("the variable %q contains a zero byte", name)
		}
	}
	if c := spec.Credential; c != nil && os.Geteuid() != 0 && int(c.UID) == os.Geteuid() && int(c.GID) == os.Getegid() {
		spec.Credential = nil // nothing to change, and not even that is allowed
	}
	spec.Env = Environ(spec.Env, spec.ListenNames, spec.Segment != nil)
	return nil
}

func startDirect(spec Spec, files descriptors) (*Process, error) {
	attr := &syscall.ProcAttr{Dir: spec.Dir, Env: spec.Env, Files: files.list, Sys: &syscall.SysProcAttr{Setpgid: true}}
	if c := spec.Credential; c != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	pid, step, err := forkInto(spec.Cgroup, spec.Path, spec.Args, attr)
	if step != "" {
		return nil, &Error{Path: spec.Path, Step: step, On: spec.Cgroup, Err: err}
	}
	if err != nil {
		return nil, explainDirect(spec, err)
	}
	return watchChild(spec.Path, pid)
}

// explainDirect finds out which step failed, for fork and exec only give a number.
func explainDirect(spec Spec, err error) error {
	e := &Error{Path: spec.Path, Step: "exec", Err: err}
	if spec.Dir != "" {
		fi, serr := os.Stat(spec.Dir)
		if serr == nil && !fi.IsDir() {
			serr = syscall.ENOTDIR
		}
		var pe *fs.PathError
		if errors.As(serr, &pe) {
			serr = pe.Err
		}
		if serr != nil {
			e.Step, e.On, e.Err = "dir", spec.Dir, serr
			return e
		}
	}
	if c := spec.Credential; c != nil && errors.Is(err, syscall.EPERM) {
		e.Step, e.On = "user", fmt.Sprint(c.UID)
		return e
	}
	e.Advice = stage.AdviseExec(spec.Path, err)
	return e
}

// watchChild makes a Process of the child pid, or ends it.
func watchChild(path string, pid int) (*Process, error) {
	id, err := proc.Of(pid)
	var w *watch
	if err == nil {
		w, err = openWatch(pid, true)
	}
	if err != nil {
		syscall.Kill(pid, syscall.SIGKILL)
		wait(pid, 0)
		return nil, &Error{Path: path, Step: "fork", Err: fmt.Errorf("identify the new process: %w", err)}
	}
	return &Process{id: id, path: path, own: true, watch: w}, nil
}
