package lease

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

func TestAProcessKilledInTheMiddleOfAWriteLeavesTheLastCommittedValue(t *testing.T) {
	l := newLease(t)
	p := startPuppet(t, l.Path())
	p.want("ok 1", "try", high, 3)
	p.want("ok", "write", high, 5)
	p.want("ok", "half", high, 6)
	p.kill()
	wantValue(t, l, 5, 1)
	term := must(l.TryAcquire(low, 3))(t)
	if v := must(l.ReadAsOwner(low))(t); v != rec(5) {
		t.Fatalf("successor reads %v", v)
	}
	// The dead one's slot is free for others, its half value for nobody.
	for n := uint64(7); n < 20; n++ {
		if err := l.WriteAsOwner(low, rec(n)); err != nil {
			t.Fatal(err)
		}
		wantValue(t, l, n, term)
	}
}

func TestOnePausedInTheMiddleOfAWriteThatLostTheLeaseDamagesNothing(t *testing.T) {
	for _, terms := range []int{1, 2, 3, 10} {
		for _, writes := range []int{0, 1, 2, 5} {
			t.Run(fmt.Sprintf("%d terms of %d writes", terms, writes), func(t *testing.T) {
				l := newLease(t)
				paused := startPuppet(t, l.Path())
				paused.want("ok 1", "try", high, 3)
				paused.want("ok", "write", high, 5)
				paused.want("ok", "half", high, 6)
				n, term := uint64(5), uint64(1)
				for i := range terms {
					// Every second owner is another handle.
					owner, pid := l, uint32(low)
					if i%2 == 1 {
						owner, pid = reopen(t, l), low+1
					}
					term = must(owner.TryAcquire(pid, 3))(t)
					for range writes {
						n++
						if err := owner.WriteAsOwner(pid, rec(n)); err != nil {
							t.Fatal(err)
						}
					}
					if err := owner.Release(pid); err != nil {
						t.Fatal(err)
					}
				}
				wantValue(t, l, n, term)
				paused.want("err not-owner", "finish")
				wantValue(t, l, n, term)
				paused.want("err not-owner", "write", high, 99)
				wantValue(t, l, n, term)
				must(l.TryAcquire(low, 3))(t)
				if v := must(l.ReadAsOwner(low))(t); v != rec(n) {
					t.Fatalf("next owner reads %v", v)
				}
			})
		}
	}
}

func TestR6SeveralPausedInTheMiddleOfTheirWritesDamageNothing(t *testing.T) {
	l := newLease(t)
	var halves []*halfWrite
	for i := range 20 {
		h := reopen(t, l)
		pid := uint32(1000 - i) // each takes from the one before
		term := must(h.TryAcquire(pid, 3))(t)
		if i%2 == 0 {
			if err := h.WriteAsOwner(pid, rec(uint64(i))); err != nil {
				t.Fatal(err)
			}
		}
		half, err := beginHalf(h.view.p, shm.PackOwner(pid, term), rec(uint64(5000+i)))
		if err != nil {
			t.Fatal(err)
		}
		halves = append(halves, half)
	}
	term := must(l.TryAcquire(low, 3))(t)
	rand.Shuffle(len(halves), func(i, j int) { halves[i], halves[j] = halves[j], halves[i] })
	for i, h := range halves {
		wantErr(t, h.finish(), ErrNotOwner)
		wantValue(t, l, max(18, uint64(100*i)), term)
		if err := l.WriteAsOwner(low, rec(uint64(100*i+100))); err != nil {
			t.Fatal(err)
		}
	}
}

// A paused owner that wakes before its successor has adopted the payload may
// still publish: then the successor adopts, and goes on from, what it published.
func TestR4AWriteThatEndsBeforeTheAdoptionIsNotLost(t *testing.T) {
	l := newLease(t)
	term := must(l.TryAcquire(high, 3))(t)
	half, err := beginHalf(l.view.p, shm.PackOwner(high, term), rec(2))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(high); err != nil {
		t.Fatal(err)
	}
	if err := half.finish(); err != nil {
		t.Fatal(err)
	}
	other := reopen(t, l)
	must(other.TryAcquire(low, 3))(t)
	if v := must(other.ReadAsOwner(low))(t); v != rec(2) {
		t.Errorf("successor reads %v", v)
	}
}

func TestR9SeveralHandlesOfOneOwnerWriteAtOnce(t *testing.T) {
	l := newLease(t)
	handles := []*OwnerLease[record]{l, reopen(t, l), reopen(t, l)}
	must(l.TryAcquire(low, 3))(t)
	const each = 2000
	var wg sync.WaitGroup
	for i, h := range handles {
		for g := range 2 { // and goroutines of one handle
			wg.Go(func() {
				for n := range uint64(each) {
					if err := h.WriteAsOwner(low, rec(n<<8|uint64(i)<<4|uint64(g))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if v, _ := l.Snapshot(); v.torn() {
					t.Errorf("torn: %v", v)
					return
				}
			}
		}
	})
	wg.Wait()
	close(stop)
	readers.Wait()
	if seq := shm.UnpackCommit(l.seg.Commit.Load()).Seq; seq != 6*each {
		t.Errorf("%d writes were published, %d succeeded", seq, 6*each)
	}
}

func TestR5ACommittedValueIsNotOverwrittenInPlace(t *testing.T) {
	l := newLease(t)
	term := must(l.TryAcquire(low, 3))(t)
	half, err := beginHalf(l.view.p, shm.PackOwner(low, term), rec(2))
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, l, 1, term)
	if err := half.finish(); err != nil {
		t.Fatal(err)
	}
	wantValue(t, l, 2, term)
}

// The slot that comes free holds the committed value.
func TestR10AFreedSlotKeepsItsCommittedValue(t *testing.T) {
	l := newLease(t, WithWriterSlots(1))
	must(l.TryAcquire(low, 3))(t)
	for n := uint64(2); n < 10; n++ { // each time in the other cell
		h := reopen(t, l)
		if err := h.WriteAsOwner(low, rec(n)); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		next := reopen(t, l)
		half, err := beginHalf(next.view.p, shm.PackOwner(low, 1), rec(99))
		if err != nil {
			t.Fatal(err)
		}
		wantValue(t, l, n, 1)
		half.p.busy.unlock()
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestR7AReaderNeverSeesATornValue(t *testing.T) {
	l := must(Create(t.TempDir()+"/lease", pageOf(0, 0)))(t)
	defer l.Close()
	must(l.TryAcquire(low, 3))(t)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := uint64(1); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := l.WriteAsOwner(low, pageOf(n, n)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	reader := reopen(t, l)
	last, naive := uint64(0), 0
	for range 20000 {
		v, _ := reader.Snapshot()
		if v.Sum != v.sum() || v.N < last {
			t.Fatalf("value %d after %d, torn: %v", v.N, last, v.Sum != v.sum())
		}
		last = v.N
		// Without the second load of the commit word:
		shm.LoadValue(&v, reader.view.p.cells[reader.seg.Commit.Load()&cellBits>>32])
		if v.Sum != v.sum() {
			naive++
		}
	}
	close(stop)
	writer.Wait()
	t.Logf("a naive reader saw %d torn values", naive)
}

// What an owner reads was written in its term or before, also when it loses
// the lease while it reads.
func TestR8AnOwnersReadIsOfItsTerm(t *testing.T) {
	l := newLease(t)
	other := reopen(t, l)
	const theirs = 1 << 40
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := uint64(0); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := other.TryAcquire(low, 3); err != nil { // from the higher pid
				t.Error(err)
				return
			}
			other.WriteAsOwner(low, rec(theirs+n))
			other.WriteAsOwner(low, rec(n)) // before it goes it clears the mark
			other.Release(low)
		}
	})
	reads := 0
	for end := time.Now().Add(30 * time.Second); reads < 5000 && time.Now().Before(end); {
		if _, err := l.TryAcquire(high, 3); err != nil {
			continue
		}
		for range 10 {
			v, err := l.ReadAsOwner(high)
			if err != nil {
				break
			}
			reads++
			if v.N >= theirs || v.torn() {
				t.Fatalf("read %v while another owned it", v)
			}
		}
	}
	close(stop)
	wg.Wait()
	if reads == 0 {
		t.Error("it never owned")
	}
}

func TestWriterSlotsRunOutAndAreGivenBack(t *testing.T) {
	l := newLease(t, WithWriterSlots(2))
	must(l.TryAcquire(low, 3))(t)
	if err := l.WriteAsOwner(low, rec(2)); err != nil {
		t.Fatal(err)
	}
	second := reopen(t, l)
	if err := second.WriteAsOwner(low, rec(3)); err != nil {
		t.Fatal(err)
	}
	third := reopen(t, l)
	wantErr(t, third.WriteAsOwner(low, rec(4)), ErrNoWriterSlot)
	wantValue(t, l, 3, 1)
	// Reading needs no slot.
	if v := must(third.ReadAsOwner(low))(t); v != rec(3) {
		t.Errorf("third handle reads %v", v)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	// The slot that comes free holds the committed value: it must survive.
	half, err := beginHalf(third.view.p, shm.PackOwner(low, 1), rec(4))
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, l, 3, 1)
	if err := half.finish(); err != nil {
		t.Fatal(err)
	}
	wantValue(t, l, 4, 1)
}

func TestTheSlotOfADeadProcessIsGivenAway(t *testing.T) {
	l := newLease(t, WithWriterSlots(1))
	p := startPuppet(t, l.Path())
	p.want("ok 1", "try", high, 3)
	p.want("ok", "write", high, 5)
	must(l.TryAcquire(low, 3))(t)
	wantErr(t, l.WriteAsOwner(low, rec(6)), ErrNoWriterSlot)
	p.kill()
	if err := l.WriteAsOwner(low, rec(6)); err != nil {
		t.Fatal(err)
	}
	wantValue(t, l, 6, 2)
}

// slotsWith makes a lease with one writer slot whose head is what was left
// there by id.
func slotWith(t *testing.T, phase uint8, id proc.Identity, whole bool) *OwnerLease[record] {
	l := newLease(t, WithWriterSlots(1))
	w := &l.seg.Writers[0]
	word := shm.Phase{Phase: phase, Incarnation: 7, PID: uint32(id.PID)}.Pack()
	w.PID.Store(uint64(id.PID))
	w.Start.Store(id.Start)
	w.Boot.Store(id.Boot)
	w.PIDNS.Store(id.PIDNS)
	w.Check.Store(slotCheck(word, id))
	if !whole {
		w.Check.Store(1)
	}
	w.Phase.Store(word)
	must(l.TryAcquire(low, 3))(t)
	return l
}

func TestR2WhichSlotsAreGivenAway(t *testing.T) {
	me := must(proc.Self())(t)
	if me.Start == 0 {
		t.Skip("this system does not tell when a process started")
	}
	p := startPuppet(t, newLease(t).Path())
	dead := must(proc.Of(int(p.pid())))(t)
	p.kill()
	if proc.Judge(dead) != proc.Gone {
		t.Skip("the pid of the dead puppet was reused")
	}
	reused, reborn, foreign := me, dead, dead
	reused.Start++ // another process had our pid
	reborn.Boot ^= 1
	foreign.PIDNS ^= 1
	for name, c := range map[string]struct {
		phase uint8
		id    proc.Identity
		whole bool
		free  bool
	}{
		"living":                          {shm.PhaseJoined, me, true, false},
		"dead":                            {shm.PhaseJoined, dead, true, true},
		"dead, pid reused":                {shm.PhaseJoined, reused, true, true},
		"of an earlier boot":              {shm.PhaseJoined, reborn, true, true},
		"dead, of another pid namespace":  {shm.PhaseJoined, foreign, true, false},
		"dead, but what stands is torn":   {shm.PhaseJoined, dead, false, false},
		"taken by halves by a living one": {shm.PhaseJoining, me, false, false},
		"taken by halves by a dead one":   {shm.PhaseJoining, dead, false, true},
		"free":                            {shm.PhaseFree, me, false, true},
		"unknown phase":                   {99, dead, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := slotWith(t, c.phase, c.id, c.whole)
			err := l.WriteAsOwner(low, rec(2))
			if c.free && err != nil {
				t.Errorf("not given away: %v", err)
			}
			if !c.free && !errors.Is(err, ErrNoWriterSlot) {
				t.Errorf("given away (%v)", err)
			}
		})
	}
}

// A taker that was taken for dead wakes up and stores its identity over that
// of the next holder: the slot names nobody then, and is not given away.
func TestASlotWithAMixedIdentityIsNotGivenAway(t *testing.T) {
	l := newLease(t, WithWriterSlots(1))
	must(l.TryAcquire(low, 3))(t)
	if err := l.WriteAsOwner(low, rec(2)); err != nil {
		t.Fatal(err)
	}
	w := &l.seg.Writers[0]
	w.Start.Add(1) // our pid, another start: reads as dead
	other := reopen(t, l)
	wantErr(t, other.WriteAsOwner(low, rec(3)), ErrNoWriterSlot)
	if err := l.WriteAsOwner(low, rec(4)); err != nil {
		t.Fatal(err)
	}
	if err := l.view.p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.WriteAsOwner(low, rec(5)); err != nil {
		t.Fatal(err)
	}
	wantErr(t, l.WriteAsOwner(low, rec(6)), ErrClosed)
	wantValue(t, l, 5, 1)
}

func TestManyTakeTheLastSlotAndOneGetsIt(t *testing.T) {
	l := newLease(t, WithWriterSlots(3))
	must(l.TryAcquire(low, 3))(t)
	var handles [12]*OwnerLease[record]
	for i := range handles {
		handles[i] = reopen(t, l)
	}
	for range 50 {
		var wg sync.WaitGroup
		got := make([]bool, len(handles))
		for i, h := range handles {
			wg.Go(func() { got[i] = h.WriteAsOwner(low, rec(uint64(i))) == nil })
		}
		wg.Wait()
		slots := map[int]bool{}
		for i, h := range handles {
			if got[i] {
				slots[h.view.p.slot] = true
				h.view.p.Close()
				h.view.p.done = false
			}
		}
		if len(slots) != 3 {
			t.Fatalf("%d slots were taken, of 3: %v", len(slots), got)
		}
	}
}

func TestR11TheTermOfASnapshotIsWhole(t *testing.T) {
	for _, c := range []struct{ owner, payload uint64 }{
		{0, 0}, {1, 1}, {5, 3}, {1 << 25, 1 << 25}, {1<<25 + 1, 1<<25 - 1}, {shm.MaxTerm, shm.MaxTerm - 7}, {3<<25 + 2, 3<<25 - 9},
	} {
		commit := shm.Commit{Term: shm.CommitTerm(c.payload), Slot: 63, Cell: 1, Seq: 1<<32 - 1}.Pack()
		if got := termOf(commit, shm.PackOwner(77, c.owner)); got != c.payload {
			t.Errorf("owner word of %d, payload of %d: %d", c.owner, c.payload, got)
		}
	}
}

func TestR3TheSequenceWrapsWithoutTouchingItsNeighbours(t *testing.T) {
	l := newLease(t)
	term := must(l.TryAcquire(low, 3))(t)
	c := shm.UnpackCommit(l.seg.Commit.Load())
	c.Seq = 1<<32 - 2
	l.seg.Commit.Store(c.Pack())
	for n := range uint64(5) {
		if err := l.WriteAsOwner(low, rec(n)); err != nil {
			t.Fatal(err)
		}
		wantValue(t, l, n, term)
	}
	if seq := shm.UnpackCommit(l.seg.Commit.Load()).Seq; seq != 3 {
		t.Errorf("sequence is %d", seq)
	}
}

func TestOpenOrCreateByManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			l, err := OpenOrCreate(path, rec(uint64(i+1)))
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			if v, _ := l.Snapshot(); v.torn() || v.N == 0 {
				t.Errorf("found %v", v)
			}
		})
	}
	wg.Wait()
	if names := must(os.ReadDir(filepath.Dir(path)))(t); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}
