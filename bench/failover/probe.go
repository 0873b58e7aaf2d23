//go:build linux

package main

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/proc"
)

// The words of the probe, a small file in memory that every worker maps,
// whatever it competes by. locks/waiter.c has the same numbers.
const (
	leaderWord  = 0 // pid of whoever led last
	stampWord   = 1 // CLOCK_MONOTONIC in ns, taken after its first write as leader
	leftWord    = 2 // the same, taken when a leader has stopped of its own
	payloadWord = 8 // six words, what a lock's holder writes
	slotWord    = 16
	slots       = 16 // of each worker: its pid once it is warm
	probeWords  = 64
)

type probe []byte

func mapProbe(path string) (probe, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(probeWords * 8); err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, probeWords*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (p probe) get(word int) int64 {
	return int64(binary.NativeEndian.Uint64(p[word*8:]))
}

func (p probe) set(word int, v int64) {
	binary.NativeEndian.PutUint64(p[word*8:], uint64(v))
}

// led notes that this process has written as the leader just now.
func (p probe) led() {
	now := proc.MonoNow()
	p.set(leaderWord, int64(os.Getpid()))
	p.set(stampWord, now)
}

// slotOf is the slot of a warm worker, -1 if it has none.
func (p probe) slotOf(pid int64) int {
	for i := range slots {
		if p.get(slotWord+i) == pid {
			return i
		}
	}
	return -1
}
