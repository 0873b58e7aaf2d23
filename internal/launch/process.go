//go:build unix

package launch

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/standbyd/standbyd/internal/proc"
)

// Process is a process that was started or adopted here. The order at its end
// is: Done, Peek, KillGroup, Reap, Close. All methods are safe for concurrent
// use.
type Process struct {
	id    proc.Identity
	path  string
	own   bool // our child; else adopted
	watch *watch

	mu     sync.Mutex
	gate   *gate // while it waits there
	reaped bool
	ended  bool // status is known for good
	status Status
	closed bool
}

// Adopt takes hold of a process that somebody else started, for example a
// worker of the supervisor before this one. proc.ErrGone if it is dead.
func Adopt(id proc.Identity) (*Process, error) {
	w, err := openWatch(id.PID, false)
	if err != nil {
		if absent(err) {
			err = proc.ErrGone
		}
		return nil, fmt.Errorf("adopt %v: %w", id, err)
	}
	// Asked after the pidfd was opened: who has the number now has it there.
	if proc.Judge(id) == proc.Gone {
		w.close()
		return nil, fmt.Errorf("adopt %v: %w", id, proc.ErrGone)
	}
	now, err := proc.Of(id.PID)
	if err == nil && now != id {
		err = errors.New("it cannot be told apart from other processes with that pid")
	}
	if err != nil {
		w.close()
		return nil, fmt.Errorf("adopt %v: %w", id, err)
	}
	return &Process{id: id, watch: w}, nil
}

// Identity is that of the process, from the stage on: exec does not change it.
func (p *Process) Identity() proc.Identity { return p.id }

// Own reports whether the process is a child of this one; else it was adopted.
func (p *Process) Own() bool { return p.own }

// Done is closed when the process has ended. It stays open if Close came first.
func (p *Process) Done() <-chan struct{} { return p.watch.done }

// Peek tells how the process ended, and false as long as it has not. It reaps
// nothing. Of an adopted process it is known only where the kernel tells
// (Linux 6.15), or while its parent has not reaped it.
func (p *Process) Peek() (Status, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peekLocked()
}

func (p *Process) peekLocked() (Status, bool) {
	if p.ended {
		return p.status, true
	}
	s, ended := p.watch.peek(p.id, p.own)
	if ended && s.Known { // else more may be known when its parent has reaped it
		p.status, p.ended = s, true
	}
	return s, ended
}

// Signal sends sig to the process alone. proc.ErrGone if it has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return fmt.Errorf("send %v to %v: %w", sig, p.id, proc.ErrGone)
	}
	if err := p.watch.signal(p.id, sig); err != nil {
		if absent(err) {
			err = proc.ErrGone
		}
		return fmt.Errorf("send %v to %v: %w", sig, p.id, err)
	}
	return nil
}

// KillGroup sends SIGKILL to the process and all that still are in its process
// group. It is for the time before Reap, afterwards it is ErrReaped: until
// then the zombie keeps the number from being given to others. A group without
// members is no error.
func (p *Process) KillGroup() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := ErrReaped
	if !p.reaped {
		err = p.watch.killGroup(p.id, p.own)
	}
	if err == nil || absent(err) {
		return nil
	}
	return fmt.Errorf("kill the process group of %v: %w", p.id, err)
}

// Reap gives the number of an ended child back to the system; for an adopted
// process there is nothing to do. ErrRunning before its end. A second Reap does
// nothing.
func (p *Process) Reap() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reapLocked()
}

func (p *Process) reapLocked() error {
	if p.reaped {
		return nil
	}
	s, ended := p.peekLocked()
	if !ended {
		return fmt.Errorf("reap %v: %w", p.id, ErrRunning)
	}
	if p.own {
		var err error
		if s, err = p.watch.reap(p.id, s); err != nil {
			return fmt.Errorf("reap %v: %w", p.id, err)
		}
	}
	p.reaped, p.ended, p.status = true, true, s
	return nil
}

// Close lets go of the process and never ends it, with one exception: one that
// still waits at the gate ends, and is reaped. A child that is closed before
// Reap stays a zombie from its end to ours. A second Close does nothing.
func (p *Process) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	g := p.gate
	p.gate = nil
	p.mu.Unlock()
	if g != nil {
		g.close()
		p.Signal(syscall.SIGKILL)
		<-p.watch.done
		p.Reap()
	}
	return p.watch.close()
}

// wait is wait4 for one child.
func wait(pid, options int) (syscall.WaitStatus, error) {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(pid, &ws, options, nil)
		if err != syscall.EINTR {
			return ws, err
		}
	}
}

// absent recognises the errors that say that nobody has a pid.
func absent(err error) bool {
	return errors.Is(err, syscall.ESRCH) || errors.Is(err, proc.ErrGone)
}
