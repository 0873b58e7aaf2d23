//go:build unix

package launch

import (
	"encoding/binary"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// stageName is argv[0] of a stage: what ps shows until the program runs.
const stageName = "standbyd-stage"

// failedStatus is the exit status of a stage that could not start the program,
// like that of a shell.
const failedStatus = 127

var staging atomic.Bool

// Stage makes this program able to start others through a stage. It must be
// the first line of main: if this process is a stage, it becomes the wanted
// program and does not return; else it returns at once.
func Stage() {
	if len(os.Args) == 2 && os.Args[0] == stageName {
		if gate, err := strconv.Atoi(os.Args[1]); err == nil && gate >= firstFD {
			os.Exit(runStage(gate))
		}
	}
	staging.Store(true)
}

// CanStage reports whether this process has called Stage, so that Spec.Staged
// works.
func CanStage() bool { return staging.Load() }

// runStage returns only if the program does not run. The report descriptor is
// the one after gate.
func runStage(gate int) (status int) {
	report := gate + 1
	pin()
	closeOthersOnExec(gate)
	o, err := readOrder(gate)
	if err != nil {
		return 0 // the parent is gone, or gave up: nobody is interested
	}
	pid := strconv.Itoa(os.Getpid())
	env := append(o.Env, "STANDBYD_PID="+pid)
	if o.ListenPID {
		env = append(env, "LISTEN_PID="+pid)
	}
	step, on, err := o.prepare()
	if err == nil {
		step = "exec"
		// The byte tells a death before exec from success, which is the
		// end of the pipe too.
		if _, err = syscall.Write(report, []byte{goByte}); err == nil {
			err = syscall.Exec(o.Path, o.Args, env)
		}
	}
	advice := adviseSetting(step, err)
	if step == "exec" {
		advice = adviseExec(o.Path, err)
	}
	syscall.Write(report, encodeFailure(step, on, err, advice))
	return failedStatus
}

// prepare does what has to be done before exec, in an order in which the next
// step is still allowed.
func (o *order) prepare() (step, on string, err error) {
	if step, on, err := o.Settings.early(); err != nil {
		return step, on, err
	}
	if o.Dir != "" {
		if err := syscall.Chdir(o.Dir); err != nil {
			return "dir", o.Dir, err
		}
	}
	if o.Umask >= 0 {
		syscall.Umask(o.Umask)
	}
	if step, on, err := o.become(); err != nil {
		return step, on, err
	}
	return o.Settings.late()
}

// become changes the user.
func (o *order) become() (step, on string, err error) {
	c := o.Credential
	if c == nil {
		return "", "", nil
	}
	groups := make([]int, len(c.Groups))
	for i, g := range c.Groups {
		groups[i] = int(g)
	}
	if err := syscall.Setgroups(groups); err != nil {
		return "groups", "", err
	}
	if err := syscall.Setgid(int(c.GID)); err != nil {
		return "group", strconv.Itoa(int(c.GID)), err
	}
	if err := syscall.Setuid(int(c.UID)); err != nil {
		return "user", strconv.Itoa(int(c.UID)), err
	}
	return "", "", nil
}

// readOrder waits at the gate. Without the go byte there is no order.
func readOrder(gate int) (*order, error) {
	var head [4]byte
	if err := readFull(gate, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > 1<<28 {
		return nil, errOrder
	}
	body := make([]byte, n+1)
	if err := readFull(gate, body); err != nil {
		return nil, err
	}
	if body[n] != goByte {
		return nil, errOrder
	}
	return decodeOrder(body[:n])
}

func readFull(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := syscall.Read(fd, b)
		switch {
		case err == syscall.EINTR || err == syscall.EAGAIN:
			continue
		case err != nil:
			return err
		case n == 0:
			return errOrder
		}
		b = b[n:]
	}
	return nil
}

// adviseExec says what is behind an exec that failed, if that can be seen.
func adviseExec(path string, err error) string {
	fi, serr := os.Stat(path)
	if serr != nil {
		return ""
	}
	switch err {
	case syscall.ENOENT:
		return "the file exists, but the interpreter or loader that it names does not"
	case syscall.EACCES:
		switch {
		case fi.IsDir():
			return "it is a directory"
		case fi.Mode()&0o111 == 0:
			return "the file is not executable: chmod +x"
		}
		return "this user may not execute the file, or its file system is mounted noexec"
	case syscall.ENOEXEC:
		return "neither a program for this machine nor a script that starts with #!"
	case syscall.EAGAIN:
		return "the user has as many processes as the limit nproc allows"
	case syscall.ETXTBSY:
		return "somebody has the file open for writing"
	}
	return ""
}
