//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// limit bounds every wait for something that ought to happen.
const limit = 60 * time.Second

// rig is one way to have a leader and a next one, brought up for some rounds.
type rig interface {
	start(ctx context.Context, s *stage) error
	// revive brings back the worker of a slot that was killed, where nobody
	// else does.
	revive(s *stage, slot int) error
	stop()
}

// errSkip is why a row cannot be measured here.
var errSkip = errors.New("skipped")

func skip(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errSkip, fmt.Sprintf(format, args...))
}

// stage is what one rig plays on.
type stage struct {
	dir     string // empty at the start, in memory
	probe   probe
	data    string // the file that each worker loads
	workers int
	sc      scenario
	notes   func(string) // what the rig says of itself, for the report
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

// vars is the environment of a worker.
func (s *stage) vars(part string, slot int) []string {
	v := []string{
		partEnv + "=" + part, probeEnv + "=" + s.path("probe"), dataEnv + "=" + s.data,
		lockEnv + "=" + s.path("lock"), slotEnv + "=" + strconv.Itoa(slot), benchEnv + "=" + strconv.Itoa(os.Getpid()),
	}
	if s.sc.tick != 0 {
		v = append(v, tickEnv+"="+s.sc.tick.String())
	}
	return v
}

// fleet is workers that the benchmark starts itself: nobody supervises them.
type fleet struct {
	command func(s *stage, slot int) (*exec.Cmd, error)
	workers []*exec.Cmd
}

func (f *fleet) start(_ context.Context, s *stage) error {
	f.workers = make([]*exec.Cmd, s.workers)
	for slot := range f.workers {
		if err := f.launch(s, slot); err != nil {
			return err
		}
		if slot == 0 { // what they share is made by the first
			if err := until("the first worker", func() bool { return s.probe.get(slotWord) != 0 }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fleet) launch(s *stage, slot int) error {
	cmd, err := f.command(s, slot)
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	f.workers[slot] = cmd
	return nil
}

// revive reaps the dead one only now: a parent that wakes at its death would
// take a processor from the standbys, and a program under locks has none.
func (f *fleet) revive(s *stage, slot int) error {
	_ = f.workers[slot].Wait()
	return f.launch(s, slot)
}

func (f *fleet) stop() {
	for _, c := range f.workers {
		if c != nil {
			_ = c.Process.Kill()
		}
	}
	for _, c := range f.workers {
		if c != nil {
			_ = c.Wait()
		}
	}
}

// inGo are workers of this very program.
func inGo(part string, env ...string) func() rig {
	return func() rig {
		return &fleet{command: func(s *stage, slot int) (*exec.Cmd, error) {
			cmd := exec.Command(self)
			cmd.Env = append(append(os.Environ(), s.vars(part, slot)...), env...)
			return cmd, nil
		}}
	}
}

// inC are workers of locks/waiter.c.
func inC(lock string) func() rig {
	return func() rig {
		return &fleet{command: func(s *stage, slot int) (*exec.Cmd, error) {
			exe, err := waiter()
			if err != nil {
				return nil, err
			}
			return exec.Command(exe, lock, s.path("lock"), s.path("probe"), strconv.Itoa(slot), s.data), nil
		}}
	}
}

// until polls for something that is not measured.
func until(what string, ok func() bool) error {
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s", limit, what)
		}
	}
	return nil
}

// halt ends a process that has its own ideas of how: a signal, then SIGKILL.
func halt(cmd *exec.Cmd, sig syscall.Signal, patience time.Duration) {
	if cmd == nil || cmd.Process == nil {
		return
	}
	_ = cmd.Process.Signal(sig)
	t := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	t.Stop()
}
