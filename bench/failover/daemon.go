//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// daemon is a role under the real standbyd.
type daemon struct {
	fence, proof, scheduling string
	cmd                      *exec.Cmd
	conf                     string
	pids                     func() []int
}

func (d *daemon) config(s *stage) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("[supervisor]\nruntime_dir = %q\nstate_dir = %q", s.path("run"), s.path("state"))
	p("[role.bench]\ncommand = [%q]\nworkers = %d", self, s.workers)
	p("fence = %q\nproof = %q", d.fence, d.proof)
	if d.scheduling != "" && d.scheduling != "normal" { // the default need not be a known key
		p("scheduling = %q", d.scheduling)
	}
	if s.sc.tick != 0 {
		p("tick = %q\ngrace = %d", s.sc.tick, hangGrace)
	}
	// A leader dies at each round: nothing of what guards against that may act.
	p("failovers = 1000000\nburst = 1000000\nprobation = \"0s\"\nrestart_delay = \"1ms\"\nrestart_max_delay = \"1ms\"\nstart_timeout = \"1m\"")
	p("[role.bench.env]")
	for _, v := range s.vars("supervised", 0) {
		name, value, _ := strings.Cut(v, "=")
		p("%s = %q", name, value)
	}
	return b.String()
}

func (d *daemon) start(ctx context.Context, s *stage) error {
	if standbyd == "" {
		return skip("no standbyd to run; build it (make build) and name it with -standbyd")
	}
	d.conf = s.path("standbyd.toml")
	if err := os.WriteFile(d.conf, []byte(d.config(s)), 0o600); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, standbyd, "check", "-c", d.conf).CombinedOutput(); err != nil {
		return skip("standbyd refuses this configuration: %s", strings.ReplaceAll(firstLine(out), s.dir+"/", ""))
	}
	log, err := os.Create(s.path("standbyd.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	d.cmd = exec.Command(standbyd, "run", "-c", d.conf)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	d.pids = func() (all []int) {
		for i := range slots {
			if pid := s.probe.get(slotWord + i); pid != 0 {
				all = append(all, int(pid))
			}
		}
		return all
	}
	if err := d.cmd.Start(); err != nil {
		return err
	}
	if err := until("a leader", func() bool { return s.probe.get(stampWord) != 0 }); err != nil {
		b, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w; standbyd says: %s", err, b)
	}
	return d.protection(ctx, s)
}

// protection notes by which ways this role's deaths are noticed, as standbyd
// itself says, and what it could not do.
func (d *daemon) protection(ctx context.Context, s *stage) error {
	out, err := d.verb(ctx, "status", "bench", "-o", "json")
	if err != nil {
		return err
	}
	var status struct {
		Roles []struct {
			Protection struct {
				Detect  []string `json:"detect"`
				Missing []string `json:"missing"`
			} `json:"protection"`
		} `json:"roles"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	for _, r := range status.Roles {
		note := strings.Join(r.Protection.Detect, ", ")
		if len(r.Protection.Missing) > 0 {
			note += "; missing: " + strings.Join(r.Protection.Missing, "; ")
		}
		s.notes(note)
	}
	return nil
}

func (d *daemon) verb(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, standbyd, append([]string{"-c", d.conf}, args...)...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out, fmt.Errorf("standbyd %s: %w: %s", strings.Join(args, " "), err, firstLine(exit.Stderr))
	}
	return out, err
}

// switchover asks for the planned change, and is back when it is done.
func (d *daemon) switchover(ctx context.Context) error {
	if help, _ := exec.CommandContext(ctx, standbyd, "help").Output(); !bytes.Contains(help, []byte("switchover")) {
		return skip("this standbyd has no switchover")
	}
	_, err := d.verb(ctx, "switchover", "bench")
	return err
}

func (d *daemon) revive(*stage, int) error { return nil }

func (d *daemon) stop() {
	if d.cmd == nil || d.cmd.Process == nil {
		return
	}
	halt(d.cmd, syscall.SIGTERM, 20*time.Second)
	for _, pid := range d.pids() {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); bytes.Contains(b, []byte(probeEnv+"=")) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line
}
