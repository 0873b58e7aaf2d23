//go:build linux

package launch

import (
	"errors"
	"syscall"
	"testing"

	"github.com/standbyd/standbyd/internal/proc"
)

// TestWithoutPidfd: an old kernel, or a sandbox that does not allow pidfd_open.
func TestWithoutPidfd(t *testing.T) {
	child := func(script string) *Process {
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true}})
		if err != nil {
			t.Fatal(err)
		}
		id, err := proc.Of(pid)
		if err != nil {
			t.Fatal(err)
		}
		w := &watch{done: make(chan struct{})}
		go w.waitInThread(pid)
		return &Process{id: id, own: true, watch: w}
	}
	p := child("exit 5")
	if s := ended(t, p); s != (Status{Code: 5, Known: true}) {
		t.Errorf("ended with %v", s)
	}
	if err := errors.Join(p.KillGroup(), p.Reap(), p.Close()); err != nil {
		t.Error(err)
	}
	p = child("sleep 1000")
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if s := ended(t, p); s.Signal != syscall.SIGTERM {
		t.Errorf("ended with %v", s)
	}
	if err := errors.Join(p.KillGroup(), p.Reap(), p.Close()); err != nil {
		t.Error(err)
	}
	if !lacking(syscall.ENOSYS) || !lacking(syscall.EPERM) || lacking(syscall.ESRCH) {
		t.Error("the errors of pidfd_open are misunderstood")
	}
}
