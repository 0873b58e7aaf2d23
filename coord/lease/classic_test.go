package lease

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/standbyd/standbyd/coord/shm"
)

// pids of the classic verbs need not be those of processes.
const (
	low  = 100
	high = 200
)

func TestAcquireAndRelease(t *testing.T) {
	l := newLease(t)
	if _, ok := l.CurrentOwner(); ok || l.Term() != 0 {
		t.Fatal("a new lease has an owner")
	}
	if term := must(l.TryAcquire(low, 3))(t); term != 1 {
		t.Fatalf("first term is %d", term)
	}
	if pid, ok := l.CurrentOwner(); pid != low || !ok || !l.IsOwner(low) || l.IsOwner(high) {
		t.Fatalf("owner is %d, %v", pid, ok)
	}
	if err := l.Release(low); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.CurrentOwner(); ok || l.IsOwner(low) {
		t.Fatal("still owned after the release")
	}
	if l.Term() != 1 {
		t.Fatalf("a release changed the term to %d", l.Term())
	}
}

func TestReacquireByTheOwnerKeepsTheTerm(t *testing.T) {
	l := newLease(t)
	before := must(l.TryAcquire(low, 3))(t)
	commit := l.seg.Commit.Load()
	for range 3 {
		if term := must(l.TryAcquire(low, 0))(t); term != before {
			t.Fatalf("term %d became %d", before, term)
		}
	}
	if l.seg.Commit.Load() != commit {
		t.Error("an idempotent claim changed the commit word")
	}
}

func TestLowerPidTakesFromHigher(t *testing.T) {
	l := newLease(t)
	other := reopen(t, l)
	must(l.TryAcquire(high, 3))(t)
	if term := must(other.TryAcquire(low, 3))(t); term != 2 {
		t.Fatalf("term of the lower pid is %d", term)
	}
	_, err := l.TryAcquire(high, 3)
	wantErr(t, err, ErrHeld)
	wantErr(t, l.WriteAsOwner(high, rec(9)), ErrNotOwner)
	_, err = l.ReadAsOwner(high)
	wantErr(t, err, ErrNotOwner)
	wantErr(t, l.Release(high), ErrNotOwner)
	if pid, _ := l.CurrentOwner(); pid != low {
		t.Fatalf("owner is %d", pid)
	}
	wantValue(t, l, 1, 2)
}

func TestStaleOwnerIsReplacedAfterMoreThanGraceEpochs(t *testing.T) {
	for _, grace := range []uint64{0, 1, 3, 7} {
		t.Run(fmt.Sprint(grace), func(t *testing.T) {
			l := newLease(t)
			other := reopen(t, l)
			must(l.TryAcquire(low, grace))(t)
			for range grace {
				l.TickEpoch()
			}
			_, err := other.TryAcquire(high, grace)
			wantErr(t, err, ErrHeld) // at exactly grace
			l.TickEpoch()
			if term := must(other.TryAcquire(high, grace))(t); term != 2 {
				t.Fatalf("term is %d", term)
			}
			wantErr(t, l.Beat(low), ErrLost, ErrNotOwner)
			wantErr(t, l.WriteAsOwner(low, rec(2)), ErrNotOwner)
		})
	}
}

func TestAnyGraceIsAccepted(t *testing.T) {
	for _, grace := range []uint64{1 << 30, 1 << 32, math.MaxUint64} {
		l := newLease(t)
		must(l.TryAcquire(low, grace))(t)
		for range 10 {
			l.TickEpoch()
		}
		_, err := l.TryAcquire(high, grace)
		wantErr(t, err, ErrHeld)
	}
}

func TestBeatKeepsTheLease(t *testing.T) {
	l := newLease(t)
	must(l.TryAcquire(low, 3))(t)
	for range 20 {
		l.TickEpoch()
		l.TickEpoch()
		if err := l.Beat(low); err != nil {
			t.Fatal(err)
		}
		_, err := l.TryAcquire(high, 3)
		wantErr(t, err, ErrHeld)
	}
}

func TestBeatInABeatenEpochWritesNothing(t *testing.T) {
	l := newLease(t)
	must(l.TryAcquire(low, 3))(t)
	l.TickEpoch()
	if err := l.Beat(low); err != nil {
		t.Fatal(err)
	}
	before := must(os.ReadFile(l.Path()))(t)
	if err := l.Beat(low); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, must(os.ReadFile(l.Path()))(t)) {
		t.Error("the segment changed")
	}
}

func TestBeatAfterALossFails(t *testing.T) {
	l := newLease(t)
	other := reopen(t, l)
	must(l.TryAcquire(high, 3))(t)
	must(other.TryAcquire(low, 3))(t)
	wantErr(t, l.Beat(high), ErrLost, ErrNotOwner)
	wantErr(t, l.Beat(high), ErrLost, ErrNotOwner)
	if err := other.Beat(low); err != nil {
		t.Fatal(err)
	}
	wantErr(t, newLease(t).Beat(low), ErrNotOwner) // nobody's
}

func TestOnlyTheOwnerReadsAndWrites(t *testing.T) {
	l := newLease(t)
	_, err := l.ReadAsOwner(low)
	wantErr(t, err, ErrNotOwner)
	wantErr(t, l.WriteAsOwner(low, rec(2)), ErrNotOwner)
	must(l.TryAcquire(low, 3))(t)
	if v := must(l.ReadAsOwner(low))(t); v != rec(1) {
		t.Fatalf("initial value is %v", v)
	}
	for n := uint64(2); n < 50; n++ {
		if err := l.WriteAsOwner(low, rec(n)); err != nil {
			t.Fatal(err)
		}
		if v := must(l.ReadAsOwner(low))(t); v != rec(n) {
			t.Fatalf("read %v after writing %d", v, n)
		}
		wantValue(t, l, n, 1)
	}
	_, err = l.ReadAsOwner(high)
	wantErr(t, err, ErrNotOwner)
	wantErr(t, l.WriteAsOwner(high, rec(99)), ErrNotOwner)
	if err := l.Release(low); err != nil {
		t.Fatal(err)
	}
	_, err = l.ReadAsOwner(low)
	wantErr(t, err, ErrNotOwner)
	wantErr(t, l.WriteAsOwner(low, rec(99)), ErrNotOwner)
	wantValue(t, l, 49, 1)
}

func TestANonOwnersWriteTakesNoSlot(t *testing.T) {
	l := newLease(t)
	wantErr(t, l.WriteAsOwner(low, rec(2)), ErrNotOwner)
	if l.view.p.slot != -1 {
		t.Error("it did")
	}
}

func TestWithLeaseReleasesOnReturn(t *testing.T) {
	l := newLease(t)
	err := l.WithLease(low, 3, func(r *record) {
		if !l.IsOwner(low) || *r != rec(1) {
			t.Errorf("in WithLease: owner %v, value %v", l.IsOwner(low), *r)
		}
		*r = rec(2)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.CurrentOwner(); ok {
		t.Error("not released")
	}
	wantValue(t, l, 2, 1)
}

func TestWithLeaseReleasesOnPanic(t *testing.T) {
	l := newLease(t)
	func() {
		defer func() {
			if recover() != "out" {
				t.Error("the panic did not pass through")
			}
		}()
		l.WithLease(low, 3, func(r *record) {
			r.N = 99
			panic("out")
		})
	}()
	if _, ok := l.CurrentOwner(); ok {
		t.Error("not released")
	}
	wantValue(t, l, 1, 1)
	if err := l.WithLease(high, 3, func(r *record) { *r = rec(2) }); err != nil {
		t.Fatal(err)
	}
	wantValue(t, l, 2, 2)
}

func TestWithLeaseRefusedOrLost(t *testing.T) {
	l := newLease(t)
	other := reopen(t, l)
	must(other.TryAcquire(low, 3))(t)
	wantErr(t, l.WithLease(high, 3, func(*record) { t.Error("ran without the lease") }), ErrHeld)
	if err := other.Release(low); err != nil {
		t.Fatal(err)
	}
	err := l.WithLease(high, 3, func(r *record) {
		*r = rec(7)
		must(other.TryAcquire(low, 3))(t)
	})
	wantErr(t, err, ErrNotOwner)
	if !other.IsOwner(low) {
		t.Error("a lost WithLease released its successor")
	}
	wantValue(t, l, 1, 3)
}

func TestWithLeaseNestedInItself(t *testing.T) {
	l := newLease(t)
	err := l.WithLease(low, 3, func(outer *record) {
		if err := l.WriteAsOwner(low, rec(5)); err != nil {
			t.Error(err)
		}
		*outer = rec(6)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, l, 6, 1)
}

func TestTermsRiseByOneWithEachChangeOfOwnerAndNotOtherwise(t *testing.T) {
	l := newLease(t)
	want := uint64(0)
	for round := range 100 {
		pid := uint32(low + round)
		want++
		if term := must(l.TryAcquire(pid, 3))(t); term != want {
			t.Fatalf("round %d: term %d, want %d", round, term, want)
		}
		must(l.TryAcquire(pid, 3))(t)
		l.TickEpoch()
		l.Beat(pid)
		l.WriteAsOwner(pid, rec(uint64(round)))
		l.TryAcquire(5000, 3)
		if round%2 == 0 {
			want++ // preempted
			must(l.TryAcquire(1, 3))(t)
			pid = 1
		}
		if err := l.Release(pid); err != nil {
			t.Fatal(err)
		}
		if l.Term() != want {
			t.Fatalf("round %d: term is %d, want %d", round, l.Term(), want)
		}
	}
}

func TestTokenIsGenerationAndTerm(t *testing.T) {
	l := newLease(t, WithGeneration(3))
	must(l.TryAcquire(low, 3))(t)
	if want := uint64(3)<<42 | 1; l.Token() != want {
		t.Errorf("token is %d, want %d", l.Token(), want)
	}
}

func TestASecondHandleSeesTheSame(t *testing.T) {
	l := newLease(t)
	other := reopen(t, l)
	must(l.TryAcquire(low, 3))(t)
	l.TickEpoch()
	if err := l.WriteAsOwner(low, rec(2)); err != nil {
		t.Fatal(err)
	}
	if pid, ok := other.CurrentOwner(); pid != low || !ok || other.Term() != 1 || other.Epoch() != 1 || other.Token() != l.Token() {
		t.Errorf("owner %d %v, term %d, epoch %d", pid, ok, other.Term(), other.Epoch())
	}
	wantValue(t, other, 2, 1)
	// A handle that first sees the pid own acts in that term.
	if err := other.WriteAsOwner(low, rec(3)); err != nil {
		t.Fatal(err)
	}
	if v := must(l.ReadAsOwner(low))(t); v != rec(3) {
		t.Errorf("first handle reads %v", v)
	}
}

func TestASecondProcessSeesTheSame(t *testing.T) {
	l := newLease(t)
	p := startPuppet(t, l.Path())
	p.want("ok 1", "try", high, 3)
	p.want("ok", "write", high, 5)
	wantValue(t, l, 5, 1)
	if pid, ok := l.CurrentOwner(); pid != high || !ok {
		t.Errorf("owner is %d, %v", pid, ok)
	}
	must(l.TryAcquire(low, 3))(t) // a lower pid
	p.want("err not-owner", "write", high, 6)
	p.want("err held", "try", high, 3)
	if err := l.WriteAsOwner(low, rec(8)); err != nil {
		t.Fatal(err)
	}
	p.want("ok 8 2 false", "snapshot")
	if err := l.Release(low); err != nil {
		t.Fatal(err)
	}
	p.want("ok 3", "try", high, 3)
	p.want("ok 8 false", "read", high)
}

func TestStateSurvivesCloseAndOpen(t *testing.T) {
	l := newLease(t)
	must(l.TryAcquire(low, 3))(t)
	l.TickEpoch()
	if err := l.WriteAsOwner(low, rec(4)); err != nil {
		t.Fatal(err)
	}
	path := l.Path()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal("second close:", err)
	}
	again := must(OpenOrCreate(path, rec(77)))(t)
	defer again.Close()
	wantValue(t, again, 4, 1)
	if again.Epoch() != 1 || again.Term() != 1 || !again.IsOwner(low) {
		t.Errorf("epoch %d, term %d, owner %v", again.Epoch(), again.Term(), again.IsOwner(low))
	}
	// The process goes on where its closed handle stopped.
	if term := must(again.TryAcquire(low, 3))(t); term != 1 {
		t.Errorf("term became %d", term)
	}
	if err := again.WriteAsOwner(low, rec(5)); err != nil {
		t.Fatal(err)
	}
	if err := again.Release(low); err != nil {
		t.Fatal(err)
	}
}

func TestReleaseByANonOwner(t *testing.T) {
	l := newLease(t)
	wantErr(t, l.Release(low), ErrNotOwner)
	must(l.TryAcquire(low, 3))(t)
	wantErr(t, l.Release(high), ErrNotOwner)
	if !l.IsOwner(low) {
		t.Error("it released another's lease")
	}
}

func TestPidsOutOfRangeAreErrors(t *testing.T) {
	l := newLease(t)
	for _, pid := range []uint32{0, shm.MaxPID + 1, math.MaxUint32} {
		_, err := l.TryAcquire(pid, 3)
		wantErr(t, err, ErrInvalidPID)
		wantErr(t, l.WithLease(pid, 3, func(*record) { t.Error("ran") }), ErrInvalidPID)
		_, err = l.ReadAsOwner(pid)
		wantErr(t, err, ErrNotOwner, ErrInvalidPID)
		wantErr(t, l.WriteAsOwner(pid, rec(2)), ErrNotOwner, ErrInvalidPID)
		wantErr(t, l.Release(pid), ErrNotOwner, ErrInvalidPID)
		wantErr(t, l.Beat(pid), ErrNotOwner, ErrInvalidPID)
		if l.IsOwner(pid) {
			t.Errorf("pid %d owns", pid)
		}
	}
	// A pid that is too large by exactly the width of the field is not small.
	must(l.TryAcquire(1, 3))(t)
	if l.IsOwner(1 + 1<<22) {
		t.Error("a pid of 23 bits reads as its low 22")
	}
	wantErr(t, l.Release(1+1<<22), ErrNotOwner, ErrInvalidPID)
	if !l.IsOwner(1) {
		t.Error("a pid of 23 bits released its low 22")
	}
	must(l.TryAcquire(1, 3))(t)
	if err := l.Release(1); err != nil {
		t.Fatal(err)
	}
	must(l.TryAcquire(shm.MaxPID, 3))(t)
}

func TestTermsAreExhausted(t *testing.T) {
	l := newLease(t)
	l.seg.Owner.Store(shm.PackOwner(0, shm.MaxTerm))
	var last uint64 = shm.MaxTerm
	l.seg.Heartbeat[last&1].Store(shm.PackHeartbeat(uint32(last), 0, false))
	_, err := l.TryAcquire(low, 3)
	wantErr(t, err, ErrTermsExhausted)
}

func TestCreateOnAnExistingPathLeavesItAsItWas(t *testing.T) {
	l := newLease(t)
	must(l.TryAcquire(low, 3))(t)
	before := must(os.ReadFile(l.Path()))(t)
	_, err := Create(l.Path(), rec(9))
	wantErr(t, err, ErrExists)
	if !bytes.Equal(before, must(os.ReadFile(l.Path()))(t)) || !l.IsOwner(low) {
		t.Error("it changed")
	}
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Create(junk, rec(9))
	wantErr(t, err, ErrExists)
	if b := must(os.ReadFile(junk))(t); string(b) != "mine" {
		t.Errorf("a foreign file became %q", b)
	}
	if names := must(os.ReadDir(filepath.Dir(junk)))(t); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

func TestOpenOfADamagedFileIsAnErrorAndChangesNothing(t *testing.T) {
	l := newLease(t)
	good := must(os.ReadFile(l.Path()))(t)
	patch := func(at int, b ...byte) []byte {
		c := bytes.Clone(good)
		copy(c[at:], b)
		return c
	}
	random := make([]byte, len(good))
	for i := range random {
		random[i] = byte(i * i >> 3)
	}
	for name, c := range map[string]struct {
		content []byte
		want    error
	}{
		"empty":           {nil, shm.ErrSize},
		"one byte":        {good[:1], shm.ErrSize},
		"truncated":       {good[:len(good)/2], shm.ErrSize},
		"one byte short":  {good[:len(good)-1], shm.ErrSize},
		"longer":          {append(bytes.Clone(good), 0), shm.ErrSize},
		"foreign":         {bytes.Repeat([]byte("#!/bin/sh\n"), 10000), shm.ErrMagic},
		"random":          {random, shm.ErrMagic},
		"zeros":           {make([]byte, len(good)), shm.ErrMagic},
		"another version": {patch(8, 99), shm.ErrVersion},
		"header bit":      {patch(41, 1), shm.ErrChecksum},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open[record](path)
			wantErr(t, err, c.want)
			_, err = OpenOrCreate(path, rec(3))
			wantErr(t, err, c.want)
			if !bytes.Equal(must(os.ReadFile(path))(t), c.content) {
				t.Error("the file changed")
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		_, err := Open[record](path)
		wantErr(t, err, os.ErrNotExist)
		if _, err := os.Stat(path); err == nil {
			t.Error("Open created it")
		}
	})
}

func TestADamagedCommitWordIsAnErrorNotACrash(t *testing.T) {
	l := must(Create(t.TempDir()+"/lease", rec(1), WithWriterSlots(2)))(t)
	defer l.Close()
	term := must(l.TryAcquire(low, 3))(t)
	l.seg.Commit.Store(shm.Commit{Term: uint32(term), Slot: 60, Seq: 9}.Pack())
	_, err := l.ReadAsOwner(low)
	wantErr(t, err, ErrDamaged)
	if v, at := l.Snapshot(); v != (record{}) || at != 0 {
		t.Errorf("snapshot is %v of %d", v, at)
	}
	if err := l.WriteAsOwner(low, rec(2)); err != nil { // mends it
		t.Fatal(err)
	}
	wantValue(t, l, 2, term)
}
