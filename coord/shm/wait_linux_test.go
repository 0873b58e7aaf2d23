//go:build linux

package shm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// Whatever order was asked for, and however often, the end of the thread fires
// every word of its row.
func TestEveryRobustWordFires(t *testing.T) {
	for _, firsts := range [][]int{nil, {0}, {3}, {15}, {1, 0}, {7, 7, 2, 14, 0, 9}, {-1, 16, 5}} {
		t.Run(fmt.Sprint(firsts), func(t *testing.T) {
			p := shm.DefaultParams()
			p.Seats = 16
			seg, err := shm.Create(filepath.Join(t.TempDir(), "segment"), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer seg.Close()
			held := make(chan error)
			var hold func()
			hold = func() {
				runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
				if unix.Gettid() == unix.Getpid() {
					go hold() // the main thread alone does not
					time.Sleep(time.Second)
					return
				}
				h, err := seg.HoldRobust(2)
				if err != nil {
					held <- err
					return
				}
				for j := range p.Seats {
					shm.ArmRobust(seg.RobustWord(2, j), seg.Seats[2].Robust.Load())
				}
				for _, seat := range firsts {
					h.First(seat)
				}
				held <- nil
			}
			go hold()
			if err := <-held; err != nil {
				t.Skip(err)
			}
			for j := range p.Seats {
				word := seg.RobustWord(2, j)
				for end := time.Now().Add(30 * time.Second); word.Load()&shm.RobustDied == 0; time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("the word of seat %d is %#x", j, word.Load())
					}
				}
			}
		})
	}
}

// Who waits with patience sleeps on when something urgent is told, and hears of
// all else; every other wait hears of both.
func TestUrgentNewsLeaveThePatientAsleep(t *testing.T) {
	for name, wait := range map[string]func(*atomic.Uint32) error{
		"one word":  func(w *atomic.Uint32) error { return shm.Wait(w, 0, time.Hour) },
		"two words": func(w *atomic.Uint32) error { return shm.WaitEither(w, 0, new(atomic.Uint32), 0, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			var word atomic.Uint32
			sleep := func(wait func(*atomic.Uint32) error) <-chan error {
				tid, done := make(chan int), make(chan error, 1)
				go func() {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					tid <- unix.Gettid()
					done <- wait(&word)
				}()
				asleep(t, <-tid)
				return done
			}
			patient := sleep(func(w *atomic.Uint32) error { return shm.WaitPatient(w, 0, proc.MonoNow()+int64(time.Hour)) })
			if n := shm.WakeUrgent(&word); n != 0 {
				t.Fatalf("urgent news woke %d who are patient", n)
			}
			other := sleep(wait)
			if n := shm.WakeUrgent(&word); n != 1 {
				t.Fatalf("urgent news woke %d, one waits for them", n)
			}
			if err := <-other; err != nil {
				t.Fatal(err)
			}
			if n := shm.Wake(&word, 10); n != 1 {
				t.Fatalf("news woke %d, one waits", n)
			}
			if err := <-patient; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// asleep returns when a thread of this process sleeps in a futex.
func asleep(t *testing.T, tid int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", tid))
		if err != nil {
			t.Skipf("what a thread waits for is not shown here: %v", err)
		}
		for _, call := range []int{unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV} {
			if strings.HasPrefix(string(b), fmt.Sprint(call)+" ") {
				return
			}
		}
	}
	t.Fatalf("thread %d does not wait", tid)
}

// A scratch segment is like one that was just created.
func TestScratch(t *testing.T) {
	p := shm.DefaultParams()
	p.Seats, p.Writers = 4, 1
	made, err := shm.Create(filepath.Join(t.TempDir(), "segment"), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	s, err := shm.Scratch(p)
	if err != nil {
		t.Fatal(err)
	}
	if s.Params() != made.Params() || s.Meta().Boot != made.Meta().Boot || s.Owner.Load() != made.Owner.Load() ||
		s.Heartbeat[0].Load() != made.Heartbeat[0].Load() || s.Heartbeat[1].Load() != made.Heartbeat[1].Load() {
		t.Errorf("it begins as %+v with owner %#x", s.Params(), s.Owner.Load())
	}
	s.Populate()
	if err := s.Check(); err == nil {
		t.Error("it passes for a file")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.Owner.Store(1) // still there
	p.Grace = 0
	if _, err := shm.Scratch(p); err == nil {
		t.Error("takes a grace of 0")
	}
}

// Populating changes nothing.
func TestPopulate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	seg, err := shm.Create(path, shm.DefaultParams(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seg.Populate()
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file is another than before, %v", err)
	}
}
