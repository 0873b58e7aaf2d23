package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// The command of `lock` is started by this program as two more processes:
//
//	the stage waits at a gate until the record names it, and becomes the command
//	the warden joins its process group and waits for our end, to kill the group
//
// Both end if we do before the gate is open. After that the command dies with
// us by its parent-death signal, where there is one, and the whole group by the
// warden's hand. The group has its number for as long as the warden is in it.
const (
	stageName  = "standbyd: lock stage"
	wardenName = "standbyd: lock warden"

	gateFd   = 3 // read: a byte opens it
	reportFd = 4 // write: the errno of a failed exec; closed by a good one
)

func init() {
	switch os.Args[0] {
	case stageName:
		lockStage(os.Args[1], os.Args[2], os.Args[3:])
	case wardenName:
		lockWarden()
	}
}

// lockStage runs in init, on the main thread: the parent-death signal belongs
// to the thread.
func lockStage(parent, path string, argv []string) {
	gate, report := os.NewFile(gateFd, "gate"), os.NewFile(reportFd, "report")
	if n, _ := gate.Read(make([]byte, 1)); n == 0 {
		os.Exit(exitOwnFailure)
	}
	gate.Close()
	syscall.CloseOnExec(reportFd)
	dieWithParent()
	if strconv.Itoa(os.Getppid()) != parent {
		os.Exit(exitOwnFailure)
	}
	err := syscall.Exec(path, argv, os.Environ())
	if err == syscall.ENOEXEC { // a script without #!, as execvp(3) does it
		err = syscall.Exec("/bin/sh", append([]string{"sh", path}, argv[1:]...), os.Environ())
	}
	var errno syscall.Errno
	errors.As(err, &errno)
	report.Write(binary.NativeEndian.AppendUint32(nil, uint32(errno)))
	os.Exit(exitCannotRun)
}

// lockWarden ends the group that it is in when its gate is closed.
func lockWarden() {
	signal.Ignore() // all that can be: they are meant for the command
	gate := os.NewFile(gateFd, "gate")
	os.NewFile(reportFd, "report").Write([]byte{1})
	io.Copy(io.Discard, gate)
	for {
		syscall.Kill(0, syscall.SIGKILL)
		time.Sleep(time.Second)
	}
}

// staged is a command that was started; it waits at its gate until begin.
type staged struct {
	pid     int
	changes chan syscall.WaitStatus // stopped, or ended at last
	failed  error                   // it could not be executed

	path           string
	gate, report   *os.File // ours of the stage
	warden         *exec.Cmd
	wardenGate     *os.File
	processStarted chan error
}

func startStage(path string, argv, env []string, tty *terminal) (*staged, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &staged{path: path, changes: make(chan syscall.WaitStatus, 4), processStarted: make(chan error)}
	cmd := exec.Command(self)
	cmd.Args = append([]string{stageName, strconv.Itoa(os.Getpid()), path}, argv...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if tty != nil {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, 0
	}
	theirs, err := s.pipes(cmd, &s.gate, &s.report)
	if err != nil {
		return nil, err
	}
	killWithThread(cmd.SysProcAttr)
	go s.attend(cmd)
	err = <-s.processStarted
	closeAll(theirs)
	if err != nil {
		closeAll([]*os.File{s.gate, s.report})
		return nil, fmt.Errorf("start the stage of the command: %w", err)
	}
	s.pid = cmd.Process.Pid
	if err := s.startWarden(self); err != nil {
		syscall.Kill(-s.pid, syscall.SIGKILL)
		s.close()
		return nil, fmt.Errorf("start the warden of the command: %w", err)
	}
	return s, nil
}

// attend starts the command and waits for it, on a thread that does not end
// before the process does: the parent-death signal is that of this thread's.
func (s *staged) attend(cmd *exec.Cmd) {
	runtime.LockOSThread()
	err := cmd.Start()
	s.processStarted <- err
	for err == nil {
		var ws syscall.WaitStatus
		pid, werr := syscall.Wait4(cmd.Process.Pid, &ws, syscall.WUNTRACED, nil)
		if werr == syscall.EINTR {
			continue
		}
		if pid != cmd.Process.Pid || werr != nil {
			break
		}
		s.changes <- ws
		if !ws.Stopped() {
			break
		}
	}
	select {}
}

// pipes gives cmd the far ends of a gate and a report.
func (s *staged) pipes(cmd *exec.Cmd, gate, report **os.File) (theirs []*os.File, err error) {
	gateR, gateW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reportR, reportW, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{gateR, gateW})
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{gateR, reportW}
	*gate, *report = gateW, reportR
	return cmd.ExtraFiles, nil
}

func (s *staged) startWarden(self string) error {
	cmd := exec.Command(self)
	cmd.Args = []string{wardenName}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: s.pid}
	var report *os.File
	theirs, err := s.pipes(cmd, &s.wardenGate, &report)
	if err != nil {
		return err
	}
	defer report.Close()
	err = cmd.Start()
	closeAll(theirs)
	if err != nil {
		return err
	}
	s.warden = cmd
	if n, _ := report.Read(make([]byte, 1)); n == 0 {
		return errors.New("it ended at once")
	}
	return nil
}

// begin lets the command go. If it cannot be executed, failed says why, and
// its end comes as that of any other.
func (s *staged) begin() error {
	_, err := s.gate.Write([]byte{1})
	if err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	b, _ := io.ReadAll(s.report)
	if len(b) == 4 {
		errno := syscall.Errno(binary.NativeEndian.Uint32(b))
		code := exitCannotRun
		if errno == syscall.ENOENT {
			code = exitNotFound
		}
		s.failed = &exitStatus{code, fmt.Errorf("run %s: %w", s.path, errno)}
	}
	return nil
}

// close lets go of everything; the group was killed.
func (s *staged) close() {
	closeAll([]*os.File{s.gate, s.report, s.wardenGate})
	if s.warden != nil {
		s.warden.Wait()
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
