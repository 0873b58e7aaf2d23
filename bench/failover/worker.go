//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/coord"
	"github.com/standbyd/standbyd/internal/proc"
)

// The environment of this program when it is a worker.
const (
	partEnv  = "FAILOVER_PART"
	probeEnv = "FAILOVER_PROBE"
	dataEnv  = "FAILOVER_DATA"
	lockEnv  = "FAILOVER_LOCK"
	slotEnv  = "FAILOVER_SLOT"
	fenceEnv = "FAILOVER_FENCE"
	tickEnv  = "FAILOVER_TICK"
	benchEnv = "FAILOVER_BENCH" // pid of the benchmark, which no worker outlives
)

// hangGrace is the grace wherever a hang is measured.
const hangGrace = 3

// data is what the worker has loaded; it stays resident.
var data []byte

func worker(part string) error {
	if part == "spin" {
		outlive()
		//lint:ignore SA5002 to keep a processor busy is what it is for
		for {
		}
	}
	outlive()
	p, err := mapProbe(os.Getenv(probeEnv))
	if err != nil {
		return err
	}
	slot, _ := strconv.Atoi(os.Getenv(slotEnv))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	warm := func() error {
		if err := load(os.Getenv(dataEnv)); err != nil {
			return err
		}
		p.set(slotWord+slot, int64(os.Getpid()))
		return nil
	}
	lead := func(ctx context.Context, l *coord.Leadership) error {
		claim, err := coord.ClaimOf[[6]uint64](l)
		if err != nil {
			return err
		}
		if err := claim.Write([6]uint64{uint64(os.Getpid())}); err != nil {
			return err
		}
		p.led()
		<-ctx.Done()
		p.set(leftWord, proc.MonoNow())
		return nil
	}
	switch part {
	case "flock", "ofd":
		f, err := os.OpenFile(os.Getenv(lockEnv), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if err := warm(); err != nil {
			return err
		}
		if err := block(part, int(f.Fd())); err != nil {
			return err
		}
		for i := range 6 {
			p.set(payloadWord+i, int64(os.Getpid()))
		}
		p.led()
		<-ctx.Done()
		return f.Close()
	case "restarted":
		if err := warm(); err != nil {
			return err
		}
		for i := range 6 {
			p.set(payloadWord+i, int64(os.Getpid()))
		}
		p.led()
		<-ctx.Done()
		return nil
	case "supervised":
		slot, _ = strconv.Atoi(os.Getenv("STANDBYD_INDEX"))
		return coord.Run(ctx, lead, coord.WithWarmup(func(context.Context, *coord.Member) error { return warm() }))
	case "library":
		fence, tick := coord.FenceToken, 100*time.Millisecond
		if os.Getenv(fenceEnv) == "process" {
			fence = coord.FenceProcess
		}
		grace := uint64(10)
		if s := os.Getenv(tickEnv); s != "" {
			if tick, err = time.ParseDuration(s); err != nil {
				return err
			}
			grace = hangGrace
		}
		m, err := coord.JoinFile(ctx, os.Getenv(lockEnv), coord.WithFence(fence), coord.WithTick(tick, grace))
		if err != nil {
			return err
		}
		defer m.Close()
		if err := warm(); err != nil {
			return err
		}
		if err := m.Ready(); err != nil {
			return err
		}
		return m.Run(ctx, lead)
	}
	return fmt.Errorf("there is no part %q", part)
}

// block waits for the lock.
func block(part string, fd int) error {
	for {
		var err error
		if part == "flock" {
			err = unix.Flock(fd, unix.LOCK_EX)
		} else {
			err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLKW, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart})
		}
		if err != unix.EINTR {
			return err
		}
	}
}

// load reads the data into memory of small pages, as a heap that has grown has.
func load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if data, err = unix.Mmap(-1, 0, int(fi.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
		return err
	}
	_ = unix.Madvise(data, unix.MADV_NOHUGEPAGE)     // a kernel without huge pages refuses, and has none
	_ = unix.Madvise(data, unix.MADV_POPULATE_WRITE) // spares half of the faults, where there is such a thing
	_, err = io.ReadFull(f, data)
	return err
}

// outlive ends this process when the benchmark is gone, however it went.
func outlive() {
	pid, err := strconv.Atoi(os.Getenv(benchEnv))
	if err != nil {
		return
	}
	id, err := proc.Of(pid)
	if err != nil {
		os.Exit(1)
	}
	h, err := proc.OpenHandle(id)
	if err != nil {
		os.Exit(1)
	}
	go func() {
		<-h.Done()
		os.Exit(1)
	}()
}
