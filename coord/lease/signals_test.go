//go:build linux

package lease

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
)

// stop sends SIGSTOP and waits until the process stands still.
func (p *puppet) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(int(p.pid())) + "/stat")
		if err != nil || time.Now().After(deadline) {
			p.t.Fatalf("pid %d does not stop: %v", p.pid(), err)
		}
		if s := string(b); strings.HasPrefix(s[strings.LastIndexByte(s, ')')+2:], "T") {
			return
		}
	}
}

func (p *puppet) resume() { p.cmd.Process.Signal(syscall.SIGCONT) }

func TestAcquireTakesFromAProcessThatHangs(t *testing.T) {
	l := newLease(t, WithTick(5*time.Millisecond))
	p := startPuppet(t, l.Path())
	p.want("ok 1", "acquire")
	p.want("ok", "claim-write", 7)
	p.stop()
	c := must(l.Acquire(soon(t)))(t)
	if v := must(c.Read())(t); v != rec(7) || c.Term() != 2 {
		t.Errorf("read %v in term %d", v, c.Term())
	}
	if err := c.Write(rec(8)); err != nil {
		t.Fatal(err)
	}
	p.resume()
	p.want("err lost", "claim-write", 99)
	p.want("err fenced", "claim-check")
	p.want("ok", "claim-lost")
	p.want("err lost", "claim-release")
	wantValue(t, l, 8, 2)
	if err := c.Check(); err != nil {
		t.Error("the old owner's release hit its successor:", err)
	}
}

func TestAStoppedProcessInTheMiddleOfAWriteDamagesNothing(t *testing.T) {
	l := newLease(t)
	p := startPuppet(t, l.Path())
	p.want("ok 1", "try", high, 3)
	p.want("ok", "write", high, 5)
	p.want("ok", "half", high, 6)
	p.stop()
	for range 4 {
		l.TickEpoch()
	}
	must(l.TryAcquire(uint32(1<<22-1), 3))(t) // by staleness alone
	for n := uint64(7); n < 12; n++ {
		if err := l.WriteAsOwner(1<<22-1, rec(n)); err != nil {
			t.Fatal(err)
		}
	}
	p.resume()
	p.want("err not-owner", "finish")
	p.want("err not-owner", "write", high, 99)
	wantValue(t, l, 11, 2)
}

func TestFenceProcessEndsAPredecessorThatHangsBeforeAcquireReturns(t *testing.T) {
	l := newLease(t, WithTick(5*time.Millisecond), WithFence(shm.FenceProcess))
	p := startPuppet(t, l.Path())
	p.want("ok 1", "acquire")
	p.stop()
	c := must(l.Acquire(soon(t)))(t)
	if state := must(p.cmd.Process.Wait())(t); state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the predecessor ended with %v", state)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// A claim of this process that was lost is not killed: its successor in the
// same process waits until it was released.
func TestFenceProcessWaitsForALostClaimOfTheSameProcess(t *testing.T) {
	l := newLease(t, WithTick(5*time.Millisecond), WithFence(shm.FenceProcess))
	lost := must(l.Acquire(soon(t), WithManualBeat()))(t)
	got := make(chan *Claim[record], 1)
	go func() {
		c, err := reopen(t, l).Acquire(soon(t))
		if err != nil {
			t.Error(err)
		}
		got <- c
	}()
	<-lost.Done()
	time.Sleep(20 * time.Millisecond) // gives a fault the time to show
	if len(got) != 0 {
		t.Fatal("the successor did not wait")
	}
	wantErr(t, lost.Release(soon(t)), ErrLost)
	c := receive(t, got)
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

func TestABlockedAcquireBurnsNoCPU(t *testing.T) {
	l := newLease(t, WithTick(long))
	c := must(l.Acquire(soon(t)))(t)
	p := startPuppet(t, l.Path())
	p.tell("acquire")
	for racing(l) == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	ticks := func() uint64 {
		b := must(os.ReadFile("/proc/" + strconv.Itoa(int(p.pid())) + "/stat"))(t)
		f := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+2:])
		return must(strconv.ParseUint(f[11], 10, 64))(t) + must(strconv.ParseUint(f[12], 10, 64))(t)
	}
	before := ticks()
	time.Sleep(300 * time.Millisecond)
	if used := ticks() - before; used > 3 {
		t.Errorf("%d0 ms of CPU in 300 ms", used)
	}
	if err := c.Release(soon(t)); err != nil {
		t.Fatal(err)
	}
	if a := p.answer(); a != "ok 2" {
		t.Error(a)
	}
}
