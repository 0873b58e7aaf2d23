package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"sort"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/capture"
	"github.com/standbyd/standbyd/internal/cgroup"
	"github.com/standbyd/standbyd/internal/launch"
	"github.com/standbyd/standbyd/internal/proc"
)

// post is the place of one worker: what outlives its processes.
type post struct {
	output output // of the FIFO that is stdout and stderr
	life   *life  // nil: no process
	deaths deathLog
}

// life is everything that was acquired for one process of a worker. release
// gives all of it back.
type life struct {
	process *launch.Process
	group   *proc.Cgroup // nil: it has none of its own
	started time.Time
	opened  chan struct{} // closed when the gate has been opened, or could not be
	openErr error         // why the program did not run; read after opened

	endProbe func() // ends what asks the process; never nil
	settings string // launchPrint of the config with which it was started
}

// release is called once, after the process was reaped or given up.
func (l *life) release() {
	l.endProbe()
	l.process.Close()
}

// launch starts the process of a worker: it exists, is listed on disk, and
// only then executes its program. The turn that the worker was given ends with
// that, see turns.
func (r *roleLoop) launch(i int) (pid int, err error) {
	began := time.Now()
	defer func() {
		if err != nil {
			r.sup.turns.end()
		}
	}()
	r.rebindLost()
	if err := r.mendSocket(); err != nil {
		return 0, err
	}
	if err := r.mendOutput(i); err != nil {
		return 0, err
	}
	spec, err := r.spec(i)
	if err != nil {
		return 0, err
	}
	defer spec.Stdout.Close()
	if fd := r.config.Ready.FD; fd != 0 {
		if spec.Ready, err = r.readyFile(i); err != nil {
			return 0, err
		}
		defer spec.Ready.Close()
		spec.ReadyFD = fd
	}
	group, err := r.group(i)
	if err != nil {
		return 0, err
	}
	if group != nil {
		spec.Cgroup = group.Path()
	}
	process, err := launch.Start(spec)
	if err != nil {
		if group != nil {
			cgroup.Remove(group.Path())
		}
		return 0, err
	}
	l := &life{process: process, group: group, started: time.Now(), opened: make(chan struct{}), endProbe: func() {}, settings: r.config.launchPrint()}
	r.posts[i].life = l
	err = r.saveWorkers()
	if err == nil && group != nil {
		err = r.record(group, process.Identity())
	}
	if err != nil {
		r.posts[i].life = nil
		if !spec.Staged {
			process.KillGroup()
			<-process.Done()
			process.Reap()
		}
		l.release() // a process that waits at the gate ends with this
		r.endGroupOf(r.st.workers[i].name, process.Identity(), group)
		if outOfSpace(err) {
			err = fmt.Errorf("%w; make space in %s", err, r.sup.config.RuntimeDir)
		}
		return 0, fmt.Errorf("list the new process: %w", err)
	}
	go func() {
		if spec.Staged {
			l.openErr = process.Release()
		}
		close(l.opened)
		r.sup.turns.endAfter(l.process, time.Since(began), r.isUp)
	}()
	r.watch(i, l)
	return process.Identity().PID, nil
}

// watch tells the role of the process's end.
func (r *roleLoop) watch(i int, l *life) {
	pid := l.process.Identity().PID
	go func() {
		select {
		case <-l.process.Done():
			r.tell(inEnded{i, pid})
		case <-r.done:
		}
	}()
}

func (r *roleLoop) spec(i int) (launch.Spec, error) {
	path, err := exec.LookPath(r.config.Command[0])
	if err != nil {
		var pe *exec.Error
		if errors.As(err, &pe) {
			err = pe.Err
		}
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // the path stands before it
		}
		return launch.Spec{}, fmt.Errorf("start %s: %w", r.config.Command[0], err)
	}
	spec := launch.Spec{
		Path: path, Args: append([]string{path}, r.config.Command[1:]...), Env: r.environment(i), Dir: r.config.Dir,
		Credential: r.user.credential, Umask: -1, Segment: r.seg.seg.File(), Staged: launch.CanStage(),
		Settings: r.config.Confine.settings(),
	}
	if umask := r.config.Confine.Umask; umask != nil {
		spec.Umask = *umask
	}
	for _, h := range r.listeners {
		spec.Listeners = append(spec.Listeners, h.File())
		spec.ListenNames = append(spec.ListenNames, h.Name)
	}
	if spec.Stdout, err = capture.OpenWriter(r.paths.fifo(i)); err != nil {
		return launch.Spec{}, err
	}
	return spec, nil
}

// inherited are the variables of our own environment that workers get if
// Config.Env does not say otherwise.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}

func inheritedEnv() []string {
	env := []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// environment is what docs/worker-contract.md promises. Later entries win.
func (r *roleLoop) environment(i int) []string {
	env := append([]string(nil), r.sup.config.Env...)
	env = append(env, passed(r.config.PassEnv)...)
	if r.user.home != "" {
		env = append(env, "HOME="+r.user.home, "USER="+r.user.name, "LOGNAME="+r.user.name)
	}
	keys := make([]string, 0, len(r.config.Env))
	for key := range r.config.Env {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		env = append(env, key+"="+r.config.Env[key])
	}
	env = append(env,
		"STANDBYD_ROLE="+r.config.Name,
		"STANDBYD_WORKER="+workerName(r.config.Name, i),
		"STANDBYD_INDEX="+strconv.Itoa(i),
		"STANDBYD_SEGMENT="+r.seg.seg.Path(),
		"NOTIFY_SOCKET="+r.paths.socket(),
		"STANDBYD_PRIORITY="+strconv.Itoa(r.config.WorkerOptions[i].Priority))
	if r.config.WorkerOptions[i].NoFailover {
		env = append(env, "STANDBYD_NOFAILOVER=1")
	}
	if r.config.Ready.IsSet() {
		env = append(env, "STANDBYD_ADMISSION=1")
	}
	if r.config.Watchdog > 0 {
		env = append(env, "WATCHDOG_USEC="+strconv.FormatInt(r.config.Watchdog.Microseconds(), 10))
	}
	return lastOnly(env)
}

// lastOnly keeps the last of the entries that set the same variable.
func lastOnly(env []string) []string {
	at := map[string]int{}
	var out []string
	for _, kv := range env {
		name := kv
		for j := range kv {
			if kv[j] == '=' {
				name = kv[:j]
				break
			}
		}
		if j, ok := at[name]; ok {
			out[j] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	return out
}

// bury draws the conclusions of a process's end, in the order that doBury
// states. The disk and the reaping are waited for aside.
func (r *roleLoop) bury(e doBury) {
	i := e.index
	l := r.posts[i].life
	l.endProbe()
	id := l.process.Identity()
	ended := proc.MonoNow()
	if r.seg != nil && r.seg.broken == nil {
		r.touch(func(u *segmentUse) { r.evict(u, id, ended, l.process.Own()) })
	}
	if err := l.process.KillGroup(); err != nil {
		r.emit(Event{Type: EventWarning, Worker: r.st.workers[i].name, PID: id.PID, Text: err.Error()})
	}
	r.next(inLook{})
	out, name, deaths := r.posts[i].output, r.st.workers[i].name, &r.posts[i].deaths
	go func() {
		<-l.opened
		// Children in groups of their own escaped the kill. They tell by their
		// environment whose they are; the worker's next process comes later.
		r.endLeft(name)
		r.endGroupOf(name, id, l.group)
		words := lastWords(out)
		exit := exitOf(l)
		exit.LastLines = words
		l.process.Reap()
		d := Death{At: exit.At, PID: id.PID, Cause: e.cause, Code: exit.Code, Signal: exit.Signal,
			UptimeMS: e.uptime.Milliseconds(), Leader: e.led, Ill: e.ill, Lines: clipped(words)}
		if d.Cause == "" {
			d.Cause = describeExit(exit)
		}
		if err := deaths.add(d); err != nil {
			r.emit(Event{Type: EventWarning, Worker: name, Text: err.Error()})
		}
		r.tell(inExited{index: i, pid: id.PID, exit: exit})
	}()
}

// evict takes a dead process out of the owner word and the active word. The
// proof is the pidfd that became readable; the seat (or, for a child, the
// zombie) proves that the number was still its own when the word was loaded.
func (r *roleLoop) evict(u *segmentUse, id proc.Identity, ended int64, pinned bool) {
	pid := uint32(id.PID)
	dead := func(p uint32) bool {
		if p != pid {
			return false
		}
		m, ok := u.table.Of(p)
		if !ok {
			return pinned
		}
		return m.Identity == id
	}
	if p, term := u.election.Owner(); p == pid {
		u.election.StampEnd(term, ended)
	}
	if p, term := u.election.Active(); p == pid {
		u.election.StampEnd(term, ended)
	}
	u.election.Evict(dead)
	if r.config.Fence != FenceTree {
		u.election.Bury(dead)
	}
}

// statusWait is how long we wait for the status of a process that is not our
// child: its parent has to reap it first.
const statusWait = 200 * time.Millisecond

func exitOf(l *life) Exit {
	exit := Exit{At: time.Now(), PID: l.process.Identity().PID}
	status, _ := l.process.Peek()
	for end := time.Now().Add(statusWait); !status.Known && !l.process.Own() && time.Now().Before(end); {
		time.Sleep(statusWait / 20)
		status, _ = l.process.Peek()
	}
	if l.openErr != nil {
		exit.Error = printable(l.openErr.Error())
	}
	if status.Known {
		if status.Signal != 0 {
			exit.Signal = signalName(status.Signal)
		} else {
			exit.Code = &status.Code
		}
	}
	return exit
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return strconv.Itoa(int(sig))
}
