package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/coord/filelease"
	"github.com/standbyd/standbyd/internal/proc"
)

const (
	// lostGrace is between SIGTERM and SIGKILL when the lease is lost: the rest
	// of the renew interval is for the processes to end.
	lostGrace = filelease.DefaultRenewInterval / 2
	groupPoll = 2 * time.Millisecond
	// tellGroup is when it is said that the group does not end.
	tellGroup = 5 * time.Second
)

// runLocked runs the command under the lease, and releases it at the end.
func (a *app) runLocked(store *filelease.Store, l *filelease.Lease, path string, argv []string, signals <-chan os.Signal) error {
	release := func() { store.Release(context.Background(), l) }
	tty := foreground(a.stdin)
	run, err := startStage(path, argv, append(os.Environ(), "STANDBYD_TOKEN="+strconv.FormatUint(l.Epoch(), 10)), tty)
	if err != nil {
		release()
		return a.ownFailure(err)
	}
	// The end of the command is put on record before it begins: from here on
	// the lease outlives us until the command's group is gone.
	err = store.NameCommand(context.Background(), l, run.pid)
	if err == nil {
		l.Keep(context.Background())
		err = run.begin()
	}
	if err != nil {
		a.endGroup(run)
		tty.giveBack()
		release()
		return a.ownFailure(err)
	}
	status, lost := a.attend(l, run, tty, signals)
	a.endGroup(run)
	tty.giveBack()
	release()
	switch {
	case lost != nil:
		return &exitStatus{exitLost, fmt.Errorf("%w; the command was ended", lost)}
	case run.failed != nil:
		return run.failed
	case status.Signaled():
		return &exitStatus{128 + int(status.Signal()), nil}
	case status.ExitStatus() != 0:
		return &exitStatus{status.ExitStatus(), nil}
	}
	return nil
}

// attend passes signals on until the command has ended. If the lease is lost,
// it ends it.
func (a *app) attend(l *filelease.Lease, run *staged, tty *terminal, signals <-chan os.Signal) (status syscall.WaitStatus, lost error) {
	done := l.Done()
	var kill <-chan time.Time
	for {
		select {
		case s := <-signals:
			if n, ok := s.(syscall.Signal); ok {
				syscall.Kill(run.pid, n)
			}
		case <-done:
			done, lost = nil, l.Err()
			fmt.Fprintf(a.stderr, "standbyd: %v; ending the command\n", lost)
			grace := lostGrace
			var held *filelease.HeldError
			if errors.As(lost, &held) {
				grace = 0 // somebody has it already
			}
			kill = time.After(min(grace, l.Interval()/2))
			syscall.Kill(-run.pid, syscall.SIGTERM)
			syscall.Kill(-run.pid, syscall.SIGCONT)
		case <-kill:
			syscall.Kill(-run.pid, syscall.SIGKILL)
		case ws := <-run.changes:
			if !ws.Stopped() {
				return ws, lost
			}
			tty.stop(run.pid)
		}
	}
}

// endGroup kills what is left of the command's group, and returns when nothing
// is: so long, nobody else can have the lease.
func (a *app) endGroup(run *staged) {
	syscall.Kill(-run.pid, syscall.SIGKILL)
	run.close()
	told := time.Now().Add(tellGroup)
	for !proc.GroupGone(run.pid) {
		if !told.IsZero() && time.Now().After(told) {
			told = time.Time{}
			fmt.Fprintf(a.stderr, "standbyd: processes of the group %d were killed and do not end; the lease is kept until they do\n", run.pid)
		}
		time.Sleep(groupPoll)
		syscall.Kill(-run.pid, syscall.SIGKILL)
	}
}

// terminal is the one that the command gets; nil if there is none to get.
type terminal struct{ fd, own int }

// foreground is the terminal of stdin if we are in front of it.
func foreground(stdin any) *terminal {
	if !isTerminal(stdin) {
		return nil
	}
	fd := int(stdin.(*os.File).Fd())
	front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || front != unix.Getpgrp() {
		return nil
	}
	return &terminal{fd, front}
}

func (t *terminal) set(group int) {
	// A background group that touches its terminal is stopped by SIGTTOU.
	signal.Ignore(syscall.SIGTTOU)
	unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
	signal.Reset(syscall.SIGTTOU)
}

func (t *terminal) giveBack() {
	if t != nil {
		t.set(t.own)
	}
}

// stop follows a command that was stopped from the terminal, so that the shell
// sees it, and goes on with it.
func (t *terminal) stop(group int) {
	if t == nil {
		return
	}
	t.set(t.own)
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	if front, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err == nil && front == t.own {
		t.set(group)
	}
	syscall.Kill(-group, syscall.SIGCONT)
}
