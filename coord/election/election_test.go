package election

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
)

func newElection(t testing.TB, change ...Option) *Election {
	t.Helper()
	e, err := Create(filepath.Join(t.TempDir(), "seg"), change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func again(t *testing.T, e *Election) *Election {
	t.Helper()
	h, err := Open(e.Segment().Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func claim(t *testing.T, e *Election, pid uint32, want uint64) {
	t.Helper()
	term, err := e.TryClaim(pid, DefaultGrace)
	if err != nil || term != want {
		t.Fatalf("claim by %d: term %d, %v; want term %d", pid, term, err, want)
	}
}

func TestClaimAndStepDown(t *testing.T) {
	e := newElection(t)
	claim(t, e, 100, 1)
	claim(t, e, 100, 1) // idempotent
	if pid, ok := e.CurrentLeader(); !ok || pid != 100 || !e.IsLeader(100) || e.IsLeader(101) {
		t.Fatalf("leader %d %v", pid, ok)
	}
	if err := e.StepDown(101); !errors.Is(err, ErrNotOwner) {
		t.Fatalf("step down by another: %v", err)
	}
	if err := e.StepDown(100); err != nil {
		t.Fatal(err)
	}
	if err := e.StepDown(100); !errors.Is(err, ErrNotOwner) {
		t.Fatalf("second step down: %v", err)
	}
	claim(t, e, 101, 2)
}

func TestPidsOutOfRangeAreErrors(t *testing.T) {
	e := newElection(t)
	for _, pid := range []uint32{0, shm.MaxPID + 1, 1<<32 - 1} {
		if _, err := e.TryClaim(pid, 0); !errors.Is(err, ErrInvalidPID) {
			t.Errorf("claim by %d: %v", pid, err)
		}
		if err := e.BeatAsLeader(pid); err == nil {
			t.Errorf("beat by %d succeeded", pid)
		}
		if err := e.StepDown(pid); err == nil {
			t.Errorf("step down by %d succeeded", pid)
		}
	}
}

func TestLowerPidTakesAndTheHigherIsRefused(t *testing.T) {
	e := newElection(t)
	claim(t, e, 200, 1)
	claim(t, e, 100, 2)
	if _, err := e.TryClaim(200, DefaultGrace); !errors.Is(err, ErrHeld) {
		t.Fatalf("the higher pid: %v", err)
	}
	if err := e.BeatAsLeader(200); !errors.Is(err, ErrLost) {
		t.Fatalf("beat after the loss: %v", err)
	}
	if g, err := e.Claim(Attempt{PID: 50, Seat: -1, Grace: 3, Policy: Sticky}); !errors.Is(err, ErrHeld) {
		t.Fatalf("sticky preempted: %+v", g)
	}
}

func TestStaleOnlyBeyondGrace(t *testing.T) {
	for _, grace := range []uint64{0, 1, 3, 10} {
		e := newElection(t)
		// Past the forgiveness of the epoch at creation.
		for range 20 {
			e.TickEpoch()
		}
		claim(t, e, 100, 1)
		for range grace {
			e.TickEpoch()
		}
		if _, err := e.TryClaim(200, grace); !errors.Is(err, ErrHeld) {
			t.Fatalf("grace %d: taken at exactly grace: %v", grace, err)
		}
		if err := e.BeatAsLeader(100); err != nil {
			t.Fatal(err)
		}
		for range grace {
			e.TickEpoch()
		}
		if _, err := e.TryClaim(200, grace); !errors.Is(err, ErrHeld) {
			t.Fatalf("grace %d: a beat did not keep it: %v", grace, err)
		}
		e.TickEpoch()
		term, err := e.TryClaim(200, grace)
		if err != nil || term != 2 {
			t.Fatalf("grace %d: stale and not taken: %d %v", grace, term, err)
		}
		if err := e.BeatAsLeader(100); !errors.Is(err, ErrLost) {
			t.Fatalf("beat of the replaced: %v", err)
		}
	}
}

// StaleFor counts the epochs beyond the grace, for an owner that was not forgiven
// within as many.
func TestStaleForCountsEpochs(t *testing.T) {
	e := newElection(t)
	grace := int64(e.Segment().Grace())
	claim(t, e, 100, 1)
	expect := func(what string, want int64) {
		t.Helper()
		if n := e.StaleFor(); n != want || e.Stale() != (want > 0) {
			t.Errorf("%s: stale for %d epochs (%v), want %d", what, n, e.Stale(), want)
		}
	}
	for range grace {
		e.TickEpoch()
	}
	expect("at exactly grace", 0)
	e.TickEpoch()
	expect("one beyond", 1)
	e.TickEpoch()
	expect("two beyond", 2)
	e.Segment().Forgiven.Store(e.Epoch())
	expect("forgiven", 0)
	for range grace + 1 {
		e.TickEpoch()
	}
	expect("one beyond the forgiveness", 1)
	if err := e.Release(100, 1); err != nil {
		t.Fatal(err)
	}
	expect("without an owner", 0)
}

func TestHugeGraceIsNeverStale(t *testing.T) {
	e := newElection(t)
	claim(t, e, 100, 1)
	e.Segment().Epoch.Add(1 << 29)
	if _, err := e.TryClaim(200, 1<<63); !errors.Is(err, ErrHeld) {
		t.Fatal(err)
	}
}

func TestASealedOwnerCannotBeat(t *testing.T) {
	e := newElection(t)
	claim(t, e, 100, 1)
	h := e.Segment().Heartbeat[1]
	h.Store(h.Load() | sealBit)
	if err := e.BeatAsLeader(100); !errors.Is(err, ErrLost) {
		t.Fatalf("beat: %v", err)
	}
	// Its own next claim gives the sealed term up and gets a new one.
	claim(t, e, 100, 2)
}

func TestReopenedHandleGoesOn(t *testing.T) {
	e := newElection(t)
	claim(t, e, 100, 1)
	h := again(t, e)
	claim(t, h, 100, 1)
	if err := h.BeatAsLeader(100); err != nil {
		t.Fatal(err)
	}
	if err := h.StepDown(100); err != nil {
		t.Fatal(err)
	}
	claim(t, h, 100, 2)
	// The first handle remembers term 1 and never acts in term 2.
	if err := e.BeatAsLeader(100); !errors.Is(err, ErrLost) {
		t.Fatalf("beat in an old term: %v", err)
	}
	if err := e.StepDown(100); !errors.Is(err, ErrNotOwner) {
		t.Fatalf("step down in an old term: %v", err)
	}
	if !h.IsLeader(100) {
		t.Fatal("the new term was released by the old handle")
	}
}

func TestEvictTakesOnlyFromTheOwnerThatWasProven(t *testing.T) {
	e := newElection(t)
	claim(t, e, 100, 1)
	if _, ok := e.Evict(func(uint32) bool { return false }); ok {
		t.Fatal("evicted without proof")
	}
	if term, ok := e.Evict(func(pid uint32) bool {
		// Another claims while the proof is under way.
		e.Claim(Attempt{PID: 50, Seat: -1, Grace: 3, Policy: LowestPID})
		return pid == 100
	}); ok {
		t.Fatalf("evicted term %d of another owner", term)
	}
	if pid, _ := e.CurrentLeader(); pid != 50 {
		t.Fatalf("owner is %d", pid)
	}
	if term, ok := e.Evict(func(pid uint32) bool { return pid == 50 }); !ok || term != 2 {
		t.Fatalf("evict: %d %v", term, ok)
	}
	if e.Term() != 2 {
		t.Fatalf("an eviction changed the term to %d", e.Term())
	}
}

func TestLastTermIsRefused(t *testing.T) {
	e := newElection(t)
	s := e.Segment()
	last := uint64(shm.MaxTerm - 1)
	s.Owner.Store(shm.PackOwner(0, last))
	s.Heartbeat[last&1].Store(shm.PackHeartbeat(uint32(last), 0, false))
	s.Heartbeat[(last+1)&1].Store(shm.PackHeartbeat(uint32(last-1), 0, false))
	claim(t, e, 100, shm.MaxTerm)
	e.StepDown(100)
	if _, err := e.TryClaim(100, 3); !errors.Is(err, ErrTermsExhausted) {
		t.Fatal(err)
	}
}

func TestEpochAndTagsWrap(t *testing.T) {
	e := newElection(t)
	s := e.Segment()
	term := uint64(1<<32 - 3)
	s.Owner.Store(shm.PackOwner(0, term))
	s.Heartbeat[term&1].Store(shm.PackHeartbeat(uint32(term), 0, false))
	s.Heartbeat[(term+1)&1].Store(shm.PackHeartbeat(uint32(term-1), 0, false))
	s.Epoch.Store(1<<31 - 2)
	for i := range uint64(6) {
		pid := uint32(100 - i)
		claim(t, e, pid, term+1+i)
		for range 3 {
			e.TickEpoch()
			if err := e.BeatAsLeader(pid); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.TryClaim(500, 2); !errors.Is(err, ErrHeld) {
			t.Fatalf("term %d, epoch %d: a healthy owner was stale", term+1+i, e.Epoch())
		}
	}
	for range DefaultGrace + 1 {
		e.TickEpoch()
	}
	claim(t, e, 500, term+7)
}

func TestDamagedWordsAreAnErrorAndNoHang(t *testing.T) {
	e := newElection(t)
	e.Segment().Heartbeat[0].Store(shm.PackHeartbeat(77, 0, false))
	if _, err := e.TryClaim(100, 3); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
}

func TestControlWordRefusesWithTheReason(t *testing.T) {
	e := newElection(t)
	for state, why := range map[ControlState]Why{ControlPaused: WhyPaused, ControlHeld: WhyControl, ControlClosed: WhyClosed} {
		e.SetControl(Control{State: state, Nominee: -1})
		var r *Refused
		if _, err := e.Claim(Attempt{PID: 100, Seat: -1, Grace: 3}); !errors.As(err, &r) || r.Why != why || !errors.Is(err, ErrHeld) {
			t.Errorf("%v: %v", state, err)
		}
		past := shm.MonoNow() - 1
		e.SetControl(Control{State: state, Nominee: -1, Until: past})
		if got := e.Control().State; (got == ControlOpen) != (state != ControlClosed) {
			t.Errorf("%v past its until reads %v", state, got)
		}
	}
	e.SetControl(Control{Nominee: -1, Gate: true, GrantedTerm: 5, ResignTerm: 4})
	if c := e.Control(); !c.Gate || c.GrantedTerm != 5 || c.ResignTerm != 4 || c.Nominee != -1 {
		t.Errorf("%+v", c)
	}
	claim(t, e, 100, 1)
}

func TestTickIsNeverFasterThanItsTickAndForgivesAfterAPause(t *testing.T) {
	e := newElection(t)
	s := e.Segment()
	tick := int64(s.Params().Tick)
	now := int64(s.TickedAt.Load())
	if e.Tick(now + tick - 1) {
		t.Fatal("ticked early")
	}
	for range 10 {
		now += tick
		if !e.Tick(now) || e.Tick(now) {
			t.Fatal("a tick that was due was refused, or made twice")
		}
	}
	claim(t, e, 100, 1)
	// The whole machine was paused for an hour: the owner is forgiven.
	now += 3600e9
	e.Tick(now)
	// The tick after the pause is the first of the grace.
	for range DefaultGrace - 1 {
		now += tick
		e.Tick(now)
		if e.Stale() {
			t.Fatalf("condemned %d epochs after the pause", e.Behind())
		}
	}
	now += tick
	e.Tick(now)
	if !e.Stale() {
		t.Fatal("a whole grace after the pause it is still not stale")
	}
}

// TestOneOwnerPerTerm lets goroutines claim, beat and step down at random
// through handles of their own, with ticks among them.
func TestOneOwnerPerTerm(t *testing.T) {
	e := newElection(t)
	const claimants, rounds = 4, 20000
	var granted sync.Map
	var twice atomic.Int64
	var wg sync.WaitGroup
	for c := range claimants {
		h := again(t, e)
		wg.Go(func() {
			pid := uint32(100 + c)
			rnd := rand.New(rand.NewPCG(uint64(c), 1))
			for range rounds {
				g, err := h.Claim(Attempt{PID: pid, Seat: -1, Grace: 1, Policy: Sticky})
				if err == nil {
					if by, loaded := granted.LoadOrStore(g.Term, pid); loaded {
						t.Errorf("term %d granted to %v and %d", g.Term, by, pid)
						twice.Add(1)
						return
					}
					for range rnd.IntN(4) {
						h.Beat(pid, g.Term)
					}
					if rnd.IntN(3) > 0 {
						h.Release(pid, g.Term)
					} else {
						for range 5 {
							h.TickEpoch()
						}
						if h.Segment().Owner.Load() == shm.PackOwner(pid, g.Term) {
							h.Release(pid, g.Term)
						}
					}
				} else if !errors.Is(err, ErrHeld) {
					t.Error(err)
					return
				}
				if rnd.IntN(2) == 0 {
					h.TickEpoch()
				}
			}
		})
	}
	wg.Wait()
}

func TestPromoteNeedsThePredecessorRetired(t *testing.T) {
	p := shm.DefaultParams()
	p.Cell, p.Fence = 0, shm.FenceToken
	e := newElection(t, WithParams(p))
	claim(t, e, 200, 1)
	if err := e.Promote(t.Context(), Promotion{PID: 200, Term: 1}); err != nil {
		t.Fatal(err)
	}
	if err := e.Check(200, 1); err != nil {
		t.Fatal(err)
	}
	claim(t, e, 100, 2)
	if err := e.Check(200, 1); !errors.Is(err, ErrFenced) {
		t.Fatalf("check after the loss: %v", err)
	}
	if err := e.Promote(t.Context(), Promotion{PID: 100, Term: 2}); err != nil {
		t.Fatal(err)
	}
	// The earlier term neither publishes again nor retires the later one.
	if err := e.Promote(t.Context(), Promotion{PID: 200, Term: 1}); !errors.Is(err, ErrFenced) {
		t.Fatalf("publish of an earlier term: %v", err)
	}
	if err := e.Retire(200, 1); !errors.Is(err, ErrFenced) {
		t.Fatalf("retire of an earlier term: %v", err)
	}
	if err := e.Check(100, 2); err != nil {
		t.Fatal(err)
	}
}

func TestRingKeepsWhatHappened(t *testing.T) {
	e := newElection(t)
	g, err := e.Claim(Attempt{PID: 100, Seat: -1, Grace: 3, Stamp: true})
	if err != nil || g.Reason != role.ReasonFirst {
		t.Fatalf("%+v %v", g, err)
	}
	e.Promote(t.Context(), Promotion{PID: 100, Term: 1})
	e.StampEnd(1, 5)
	e.StampEnd(1, 6)
	e.Evict(func(uint32) bool { return true })
	g, err = e.Claim(Attempt{PID: 101, Seat: -1, Grace: 3, Stamp: true})
	if err != nil || g.Reason != role.ReasonCrash {
		t.Fatalf("%+v %v", g, err)
	}
	r := e.Ring()
	if len(r) != 2 || r[0].Term != 1 || r[0].EndedAt != 5 || r[0].ActiveAt == 0 || r[0].DetectedAt == 0 || r[1].ClaimedAt < r[1].DetectedAt || r[1].PID != 101 {
		t.Fatalf("%+v", r)
	}
}

// TestHungOwnerEndedWithItsLastBeat: the ring has no time of a beat, but the
// epoch of it, and the time of the latest tick.
func TestHungOwnerEndedWithItsLastBeat(t *testing.T) {
	e := newElection(t)
	claim(t, e, 100, 1)
	e.Promote(t.Context(), Promotion{PID: 100, Term: 1})
	for range 5 {
		e.TickEpoch()
	}
	if err := e.Beat(100, 1); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		e.TickEpoch()
	}
	g, err := e.Claim(Attempt{PID: 101, Seat: -1, Grace: 3, Stamp: true})
	if err != nil || g.Reason != role.ReasonHang {
		t.Fatalf("%+v %v", g, err)
	}
	want := int64(e.seg.TickedAt.Load()) - 4*int64(e.seg.Tick())
	if r, ok := e.Entry(1); !ok || r.EndedAt != want {
		t.Fatalf("%+v, want %d", r, want)
	}
}

func TestClassicVerbsDoNotAllocate(t *testing.T) {
	e := newElection(t)
	if n := testing.AllocsPerRun(100, func() {
		e.TryClaim(100, 3)
		e.TryClaim(200, 3)
		e.BeatAsLeader(100)
		e.TickEpoch()
		e.IsLeader(100)
		e.StepDown(100)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPromoteFencesARealProcess(t *testing.T) {
	fenceRealProcess(t)
}

func BenchmarkClaimStepDown(b *testing.B) {
	e := newElection(b)
	for b.Loop() {
		e.TryClaim(100, 3)
		e.StepDown(100)
	}
}

func BenchmarkMutex(b *testing.B) {
	var mu sync.Mutex
	n := 0
	for b.Loop() {
		mu.Lock()
		n++
		mu.Unlock()
	}
}
