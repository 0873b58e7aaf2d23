//go:build linux

package shm_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

func TestAlarm(t *testing.T) {
	a, err := shm.NewAlarm()
	if err != nil {
		t.Fatal(err)
	}
	rang := make(chan int64)
	ended := make(chan error, 1)
	go func() {
		for {
			if err := a.Wait(); err != nil {
				ended <- err
				return
			}
			rang <- shm.MonoNow()
		}
	}()
	set := func(at int64) {
		t.Helper()
		if err := a.Set(at); err != nil {
			t.Fatal(err)
		}
	}
	wait := func() int64 {
		t.Helper()
		select {
		case at := <-rang:
			return at
		case <-time.After(30 * time.Second):
			t.Fatal("the alarm has not gone off")
			return 0
		}
	}

	at := shm.MonoNow() + int64(20*time.Millisecond)
	set(at)
	if got := wait(); got < at {
		t.Errorf("went off %v early", time.Duration(at-got))
	}
	set(0)
	wait()
	set(shm.MonoNow() - int64(time.Hour))
	wait()
	set(shm.MonoNow() + int64(time.Hour))
	set(shm.MonoNow()) // in place of the one before
	wait()
	set(shm.MonoNow() + int64(time.Hour))
	select {
	case <-rang:
		t.Error("went off an hour early")
	case <-time.After(20 * time.Millisecond):
	}

	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("Wait after Close: %v, want os.ErrClosed", err)
	}
	if err := a.Set(shm.MonoNow()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Set after Close: %v, want os.ErrClosed", err)
	}
}
