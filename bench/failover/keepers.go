//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// keeper is a process supervisor that starts the worker again when it has died.
type keeper struct {
	program, pkg string // what runs it, and the package that has it
	// furnish writes the service's files and says how to run the supervisor.
	furnish func(s *stage, exe string) (*exec.Cmd, error)
	cmd     *exec.Cmd
}

func (k *keeper) start(_ context.Context, s *stage) error {
	exe, err := exec.LookPath(k.program)
	if err != nil {
		return skip("there is no %s here; apt-get install %s", k.program, k.pkg)
	}
	if k.cmd, err = k.furnish(s, exe); err != nil {
		return err
	}
	k.cmd.Env = append(os.Environ(), s.vars("restarted", 0)...)
	k.cmd.Dir = s.dir
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := k.cmd.Start(); err != nil {
		return err
	}
	ended := time.Now().Add(limit)
	for s.probe.get(stampWord) == 0 {
		if p, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", k.cmd.Process.Pid)); err != nil || strings.Contains(string(p), ") Z ") {
			_ = k.cmd.Wait()
			defer func() { k.cmd = nil }()
			return skip("%s does not run here: %v", k.program, k.cmd.ProcessState)
		}
		if time.Now().After(ended) {
			return skip("%s did not start the worker within %v", k.program, limit)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

func (k *keeper) revive(*stage, int) error { return nil }

func (k *keeper) stop() { halt(k.cmd, syscall.SIGTERM, 10*time.Second) }

// script is a service's `run`, as runit and s6 want it.
func script(s *stage) (string, error) {
	dir := s.path("service")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	text := fmt.Sprintf("#!/bin/sh\nexec '%s'\n", self)
	return dir, os.WriteFile(filepath.Join(dir, "run"), []byte(text), 0o700)
}

func supervisord() rig {
	return &keeper{program: "supervisord", pkg: "supervisor", furnish: func(s *stage, exe string) (*exec.Cmd, error) {
		conf := s.path("supervisord.conf")
		text := fmt.Sprintf(`[supervisord]
nodaemon=true
logfile=%[1]s/supervisord.log
pidfile=%[1]s/supervisord.pid
childlogdir=%[1]s
user=%[3]s
[program:worker]
command=%[2]s
autorestart=true
startsecs=0
startretries=1000000
`, s.dir, self, userName())
		cmd := exec.Command(exe, "-c", conf)
		return cmd, os.WriteFile(conf, []byte(text), 0o600)
	}}
}

func userName() string {
	if os.Getuid() == 0 {
		return "root"
	}
	return fmt.Sprint(os.Getuid())
}

func runit() rig {
	return &keeper{program: "runsv", pkg: "runit", furnish: func(s *stage, exe string) (*exec.Cmd, error) {
		dir, err := script(s)
		return exec.Command(exe, dir), err
	}}
}

func s6() rig {
	return &keeper{program: "s6-supervise", pkg: "s6", furnish: func(s *stage, exe string) (*exec.Cmd, error) {
		dir, err := script(s)
		return exec.Command(exe, dir), err
	}}
}
