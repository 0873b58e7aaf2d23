//go:build unix

package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/lease"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// The test binary plays the processes that use the segment.
const (
	envSegment = "LINEAR_SEGMENT"
	envLog     = "LINEAR_LOG"
	envKind    = "LINEAR_KIND"
	envKill    = "LINEAR_KILL" // operations before the process kills itself in the middle of one, 0 never
)

func TestMain(m *testing.M) {
	if os.Getenv(envSegment) == "" {
		os.Exit(m.Run())
	}
	if err := play(); err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(1)
	}
}

// block is the payload: large, so that many are killed or stopped in the
// middle of one.
type block struct {
	Words [512]uint64
}

// blockOf gives every word of a value its place, so that no mixture passes.
func blockOf(value uint64) (b block) {
	for i := range b.Words {
		b.Words[i] = value * uint64(2*i+1)
	}
	return b
}

func (b *block) value() uint64 {
	if *b != blockOf(b.Words[0]) {
		return torn
	}
	return b.Words[0]
}

// journal is where a process writes down each call before it makes it, and
// what it was told. Every line is one write to a file, so that a kill loses
// nothing that happened before it.
type journal struct {
	f    *os.File
	buf  []byte
	err  error
	ops  int
	kill int // see envKill
}

func (j *journal) line(format string, args ...any) {
	j.buf = fmt.Appendf(j.buf[:0], format, args...)
	if _, err := j.f.Write(j.buf); err != nil {
		j.err = err
	}
}

// stopEvery is how many calls come, on average, between two in the middle of
// which the process stops; of writes, of others. Another process lets it go on.
const stopWriteEvery, stopEvery = 8, 60

// fuse returns a function that makes another thread send sig to this process,
// and returns at a random moment about as long after that as a signal takes to
// arrive: so it comes at any instruction of what follows, often enough.
func fuse(sig syscall.Signal) (light func()) {
	ready := make(chan struct{})
	var lit atomic.Bool
	go func() {
		runtime.LockOSThread()
		close(ready)
		for !lit.Load() {
		}
		syscall.Kill(os.Getpid(), sig)
	}()
	<-ready
	return func() {
		lit.Store(true)
		wait := time.Duration(rand.IntN(6000))
		for began := time.Now(); time.Since(began) < wait; {
		}
	}
}

// do makes one call.
func (j *journal) do(c call, f func() result) result {
	light := func() {}
	j.ops++
	last := j.kill > 0 && j.ops >= j.kill && changes[c.Kind] && rand.IntN(2) == 0
	if last {
		light = fuse(syscall.SIGKILL)
	} else if c.Kind == write && rand.IntN(stopWriteEvery) == 0 || rand.IntN(stopEvery) == 0 {
		light = fuse(syscall.SIGSTOP)
	}
	j.line("call %s %d %d %d %d\n", c.Kind, c.PID, c.Term, c.Value, proc.MonoNow())
	light()
	began := proc.MonoNow()
	r := f()
	if last {
		select {} // killed before, during or right after the call: nobody is told
	}
	r.At = proc.MonoNow()
	j.line("told %t %d %d %t %d %d %d\n", r.OK, r.Term, r.PID, r.Crash, r.Value, began, r.At)
	return r
}

// object is what the processes use: the lease, or a naive one.
type object interface {
	claim() (result, error)
	release(term uint64) bool
	write(term, value uint64) bool
	read(term uint64) (value uint64, ok bool)
	snapshot() (value, term uint64)
}

// real is the lease.
type real struct {
	e   *election.Election
	p   *lease.Payload
	v   *lease.View[block]
	own *lease.Claim[block]
	pid uint32
	me  int // seat
}

func (o *real) claim() (r result, err error) {
	p := o.e.Segment().Params()
	g, err := o.e.Claim(election.Attempt{PID: o.pid, Seat: o.me, Grace: p.Grace, Policy: election.Sticky, Dead: o.e.Dead})
	if errors.Is(err, election.ErrHeld) {
		return result{}, nil
	}
	return result{OK: err == nil, Term: g.Term, PID: g.Previous, Crash: g.Reason == role.ReasonCrash}, err
}

func (o *real) release(term uint64) bool { return o.e.Release(o.pid, term) == nil }

func (o *real) of(term uint64) *lease.Claim[block] {
	if o.own == nil || o.own.Term() != term {
		o.own, _ = lease.ClaimOf[block](o.p, lease.Held{PID: o.pid, Term: term})
	}
	return o.own
}

func (o *real) write(term, value uint64) bool { return o.of(term).Write(blockOf(value)) == nil }

func (o *real) read(term uint64) (uint64, bool) {
	b, err := o.of(term).Read()
	return b.value(), err == nil
}

func (o *real) snapshot() (value, term uint64) {
	b, term := o.v.Snapshot()
	return b.value(), term
}

// inPlace is a payload without a commit word that counts: the owner looks
// whether it owns and stores into the one cell that all readers read.
type inPlace struct{ real }

func (o *inPlace) cell() []atomic.Uint64 { return o.e.Segment().Writers[0].Cells[0] }

func (o *inPlace) write(term, value uint64) bool {
	if pid, t := o.e.Owner(); pid != o.pid || t != term {
		return false
	}
	b := blockOf(value)
	for i := range b.Words {
		o.cell()[i].Store(b.Words[i])
	}
	return true
}

func (o *inPlace) look() uint64 {
	var b block
	for i := range b.Words {
		b.Words[i] = o.cell()[i].Load()
	}
	return b.value()
}

func (o *inPlace) read(term uint64) (uint64, bool) {
	v := o.look()
	pid, t := o.e.Owner()
	return v, pid == o.pid && t == term
}

func (o *inPlace) snapshot() (value, term uint64) {
	_, term = o.e.Owner()
	return o.look(), term
}

// checkThenAct takes a vacant lease with a load and a store.
type checkThenAct struct{ real }

func (o *checkThenAct) claim() (result, error) {
	w := o.e.Segment().Owner
	pid, term := shm.UnpackOwner(w.Load())
	if pid != 0 {
		return result{}, nil
	}
	runtime.Gosched()
	w.Store(shm.PackOwner(o.pid, term+1))
	return result{OK: true, Term: term + 1}, nil
}

// play is a process: it claims, works for a while and gives back, or looks on,
// until it is told to end.
func play() error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	seg, err := shm.Open(os.Getenv(envSegment))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(os.Getenv(envLog), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	kill, err := strconv.Atoi(os.Getenv(envKill))
	if err != nil {
		return err
	}
	self, err := proc.Self()
	if err != nil {
		return err
	}
	seat, err := heartbeat.NewTable(seg).Join(self, heartbeat.JoinOptions{Index: -1})
	if err != nil {
		return err
	}
	p := lease.PayloadOf(seg)
	v, err := lease.ViewOf[block](p)
	if err != nil {
		return err
	}
	r := real{e: election.Attach(seg), p: p, v: v, pid: uint32(self.PID), me: seat.Number()}
	m := member{e: r.e, j: &journal{f: f, kill: kill}, pid: r.pid}
	switch os.Getenv(envKind) {
	case "in place":
		m.o = &inPlace{r}
	case "check then act":
		m.o = &checkThenAct{r}
	default:
		m.o = &r
	}
	for len(end) == 0 && m.err == nil && m.j.err == nil {
		m.e.Tick(proc.MonoNow())
		if m.term != 0 {
			m.asOwner()
		} else {
			m.asOther()
		}
		if rand.IntN(3) == 0 {
			time.Sleep(time.Duration(rand.IntN(600)) * time.Microsecond)
		}
	}
	return errors.Join(m.err, m.j.err)
}

type member struct {
	e    *election.Election
	o    object
	j    *journal
	pid  uint32
	term uint64 // that it owns, 0 none
	past uint64 // that it owned before
	n    uint64 // writes
	err  error
}

func (m *member) call(k kind, f func() result) result {
	return m.j.do(call{Kind: k, PID: m.pid, Term: m.term}, f)
}

func (m *member) asOwner() {
	still := true
	switch n := rand.IntN(100); {
	case n < 40:
		still = m.write(m.term)
	case n < 60:
		still = m.call(read, func() result {
			v, ok := m.o.read(m.term)
			return result{OK: ok, Value: v}
		}).OK
	case n < 75:
		still = m.call(check, func() result { return result{OK: m.e.Check(m.pid, m.term) == nil} }).OK
	case n < 93:
		still = m.call(beat, func() result { return result{OK: m.e.Beat(m.pid, m.term) == nil} }).OK
	default:
		still = false
	}
	if !still {
		_ = m.e.Retire(m.pid, m.term)
		m.call(release, func() result { return result{OK: m.o.release(m.term)} })
		m.term, m.past = 0, m.term
	}
}

func (m *member) write(term uint64) bool {
	m.n++
	value := uint64(m.pid)<<32 | m.n
	return m.j.do(call{Kind: write, PID: m.pid, Term: term, Value: value}, func() result {
		return result{OK: m.o.write(term, value)}
	}).OK
}

func (m *member) asOther() {
	switch n := rand.IntN(100); {
	case n < 40:
		r := m.call(claim, func() (r result) {
			r, m.err = m.o.claim()
			return r
		})
		if !r.OK {
			return
		}
		m.term = r.Term
		// Lost already: then the next operation is told so.
		_ = m.e.Promote(context.Background(), election.Promotion{PID: m.pid, Term: m.term})
	case n < 60:
		m.call(snapshot, func() result {
			v, term := m.o.snapshot()
			return result{OK: true, Value: v, Term: term}
		})
	case n < 75:
		m.call(owner, func() result {
			pid, term := m.e.Owner()
			return result{OK: true, PID: pid, Term: term}
		})
	case n < 90:
		m.call(evict, func() result {
			term, ok := m.e.Evict(m.e.Dead)
			return result{OK: ok, Term: term}
		})
	case m.past != 0:
		m.write(m.past) // as one that has not noticed
	}
}
