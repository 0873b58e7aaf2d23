//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/proc"
)

// settle is how long everybody is left alone before the leader is hit.
const settle = 25 * time.Millisecond

// least is how many rounds a row has at least, whatever time they take: enough
// that a median is not of the machine's bad moments.
const least = 7

// play brings a row up and measures n rounds of it, or as many as fit into
// the time that a row has: microseconds each.
func (b *bench) play(ctx context.Context, sc scenario, r row, n int) (us []float64, err error) {
	s := &stage{sc: sc, workers: sc.standbys + 1, notes: func(note string) { b.noted(sc.name, r.name, note) }}
	if r.solo {
		s.workers = 1
	}
	if s.workers > slots {
		return nil, fmt.Errorf("%d workers, at most %d", s.workers, slots)
	}
	if err := b.room(sc, s.workers); err != nil {
		return nil, err
	}
	if s.data, err = b.dataFile(sc.size); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(b.dir, "r"); err != nil {
		return nil, err
	}
	defer func() {
		if err == nil || errors.Is(err, errSkip) || ctx.Err() != nil {
			os.RemoveAll(s.dir)
		}
	}()
	if s.probe, err = mapProbe(s.path("probe")); err != nil {
		return nil, err
	}
	defer unix.Munmap(s.probe)
	if sc.busy {
		stop, err := spinners()
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	rig := r.rig()
	defer rig.stop()
	if err := rig.start(ctx, s); err != nil {
		return nil, err
	}
	ended := time.Now().Add(b.each)
	for i := range n {
		if i >= least && time.Now().After(ended) {
			break
		}
		if err := s.whole(ctx, r); err != nil {
			return us, err
		}
		took, err := s.round(ctx, rig)
		if err != nil {
			return us, err
		}
		us = append(us, float64(took)/1e3)
	}
	return us, nil
}

// whole waits until somebody leads, everybody else is warm, and all is quiet.
func (s *stage) whole(ctx context.Context, r row) error {
	err := until("a leader and every worker warm", func() bool {
		ok := s.probe.get(stampWord) != 0
		for i := range s.workers {
			ok = ok && s.probe.get(slotWord+i) != 0
		}
		return ok || ctx.Err() != nil
	})
	if err != nil {
		return err
	}
	wait := settle
	if s.sc.busy {
		wait *= 8 // a worker that is warm may still have to get a processor to wait on
	}
	wait = max(wait, r.rest) + rand.N(max(s.sc.tick, 10*time.Millisecond)) // at any moment of the tick
	select {
	case <-time.After(wait):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// round does it to the leader once: nanoseconds from just before that to what
// the next leader stamped.
func (s *stage) round(ctx context.Context, rig rig) (int64, error) {
	old := s.probe.get(leaderWord)
	if s.sc.fault == switchover {
		before := proc.MonoNow()
		d, ok := rig.(*daemon)
		if !ok {
			return 0, skip("there is no switchover")
		}
		if err := d.switchover(ctx); err != nil {
			return 0, err
		}
		if err := until("the next leader's first write", func() bool { return s.probe.get(stampWord) > before }); err != nil {
			return 0, err
		}
		return s.probe.get(stampWord) - s.probe.get(leftWord), nil
	}
	slot := s.probe.slotOf(old)
	if slot < 0 {
		return 0, fmt.Errorf("the leader, pid %d, is no worker of this row", old)
	}
	p, err := os.FindProcess(int(old))
	if err != nil {
		return 0, err
	}
	defer p.Release()
	s.probe.set(slotWord+slot, 0)
	sig := syscall.SIGKILL
	switch s.sc.fault {
	case hang:
		sig = syscall.SIGSTOP
	case killed:
		if err := freeze(p); err != nil {
			return 0, err
		}
	}
	zero := proc.MonoNow()
	if err := p.Signal(sig); err != nil {
		return 0, fmt.Errorf("signal the leader, pid %d: %w", old, err)
	}
	// Whoever measures stays out of the way while it happens.
	time.Sleep(5*time.Millisecond + time.Duration(s.sc.size/giB)*40*time.Millisecond)
	err = until("the next leader's first write", func() bool {
		return s.probe.get(stampWord) > zero && s.probe.get(leaderWord) != old
	})
	if err != nil {
		return 0, err
	}
	if s.sc.fault == hang {
		_ = p.Kill() // who was not fenced by its process is still there
	}
	return s.probe.get(stampWord) - zero, rig.revive(s, slot)
}

// freeze stops a process and waits until every thread of it has stopped, and
// for a moment more, in which the machine falls asleep again.
func freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop the leader, pid %d: %w", p.Pid, err)
	}
	err := until("the leader has stopped", func() bool {
		stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid))
		for _, name := range stats {
			b, _ := os.ReadFile(name)
			if i := bytes.LastIndex(b, []byte(") ")); i < 0 || b[i+2] != 'T' {
				return false
			}
		}
		return len(stats) > 0
	})
	time.Sleep(settle)
	return err
}

// spinners give every processor something else to do.
func spinners() (stop func(), err error) {
	var all []*exec.Cmd
	stop = func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	for range runtime.NumCPU() {
		c := exec.Command(self)
		c.Env = append(os.Environ(), partEnv+"=spin", "GOMAXPROCS=1", fmt.Sprintf("%s=%d", benchEnv, os.Getpid()))
		if err := c.Start(); err != nil {
			stop()
			return nil, err
		}
		all = append(all, c)
	}
	return stop, nil
}

// room refuses what would not fit into memory: all workers, and the file that
// they load, which is in memory as well.
func (b *bench) room(sc scenario, workers int) error {
	need := sc.size * int64(workers+1)
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(info), "\n") {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 && need > kib*1024*9/10 {
			return skip("%d workers with %d MiB each do not fit: %d MiB are available", workers, sc.size/miB, kib/1024)
		}
	}
	return nil
}

// dataFile is a file of that size, in memory.
func (b *bench) dataFile(size int64) (string, error) {
	name := filepath.Join(b.dir, fmt.Sprintf("data-%d", size))
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	// One size at a time: what is large is needed for the workers.
	old, _ := filepath.Glob(filepath.Join(b.dir, "data-*"))
	for _, f := range old {
		os.Remove(f)
	}
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	block := make([]byte, miB)
	for i := range block {
		block[i] = byte(i)
	}
	for range size / miB {
		if _, err := f.Write(block); err != nil {
			return "", err
		}
	}
	return name, nil
}
