package election

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/damage"
	"github.com/standbyd/standbyd/internal/proc"
)

// known are all the errors that a damaged segment may cause.
var known = []error{
	ErrHeld, ErrInvalidPID, ErrTermsExhausted, ErrDamaged, ErrNotOwner, ErrLost, ErrFenced, ErrFenceTimeout, ErrForbidden,
}

func isKnown(err error) bool {
	if err == nil {
		return true
	}
	for _, k := range known {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// damaged is a live segment whose words change under its members.
type damaged struct {
	*damage.File
	t testing.TB
	e *Election
}

// smallParams make a segment of few words, so that a change hits one that counts.
func smallParams() shm.Params {
	p := shm.DefaultParams()
	p.Seats, p.Writers, p.Cell, p.Tick, p.FenceLimit, p.DrainLimit = 4, 2, 16, time.Nanosecond, time.Millisecond, time.Millisecond
	return p
}

func newDamaged(t testing.TB, p shm.Params) *damaged {
	t.Helper()
	e, err := Create(filepath.Join(damage.Dir(t), "seg"), WithParams(p))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	d := &damaged{damage.Open(t, e.seg.Path()), t, e}
	// Seat 1 is of a process that is proven dead, seat 2 of one that cannot be
	// judged, the others are free: their pids count as alive.
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	d.sit(1, proc.Identity{PID: 101, Start: 1, Boot: self.Boot + 1, PIDNS: self.PIDNS})
	d.sit(2, proc.Identity{PID: 102, Start: 1, Boot: self.Boot, PIDNS: self.PIDNS + 1})
	return d
}

func (d *damaged) sit(seat int, id proc.Identity) {
	w := &d.e.seg.Seats[seat]
	w.PID.Store(uint64(id.PID))
	w.Start.Store(id.Start)
	w.Boot.Store(id.Boot)
	w.PIDNS.Store(id.PIDNS)
	w.Status.Store(shm.StatusReady)
	w.Phase.Store(shm.Phase{Phase: shm.PhaseJoined, Incarnation: 1, PID: uint32(id.PID)}.Pack())
}

const (
	opClaim = iota
	opBeat
	opRelease
	opEvict
	opBury
	opTick
	opTickEpoch
	opPromote
	opRetire
	opCheck
	opRead
	opStamp
	opControl
	opClassic
	opMutate      // any word
	opMutateOwner // a word of the protocol
	opCount
)

// holder is what a member believes.
type holder struct {
	pid  uint32
	term uint64
}

// run runs a program of the members' operations and of damage, and judges each
// operation by the words before and after it.
func (d *damaged) run(program []byte) {
	t, e, s := d.t, d.e, d.e.seg
	timer := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs in program %x", program)) })
	defer timer.Stop()
	in := &damage.Script{Rest: program}
	members := [4]holder{{pid: 100}, {pid: 101}, {pid: 102}, {pid: 103}}
	granted := map[uint64]bool{} // since the owner word was last damaged
	for len(in.Rest) > 0 {
		op := in.Byte() % opCount
		m := &members[in.Byte()%4]
		owner, active, epoch := s.Owner.Load(), s.Active.Load(), s.Epoch.Load()
		pid, term := shm.UnpackOwner(owner)
		beat := shm.UnpackHeartbeat(s.Heartbeat[term&1].Load())
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("operation %d of pid %d, term %d, on owner (%d,%d), beat %+v, epoch %d: %s", op, m.pid, m.term, pid, term, beat, epoch, fmt.Sprintf(format, args...))
		}
		mine := m.term != 0 && owner == shm.PackOwner(m.pid, m.term)
		wantOwner, wantActive := owner, active
		var err error
		switch op {
		case opClaim, opClassic:
			a := Attempt{PID: m.pid, Seat: int(m.pid) - 100, Term: m.term, Grace: uint64(in.Byte()) % 8, Policy: Policy(in.Byte() % 3), Dead: e.Dead, Stamp: in.Byte()%2 == 0}
			if op == opClassic {
				a = Attempt{PID: m.pid, Seat: -1, Term: e.OwnTerm(m.pid), Grace: a.Grace, Policy: LowestPID}
			}
			dead := op == opClaim && e.Dead(pid)
			outranked := op == opClaim && a.Policy == Priority && e.outranks(a.Seat, pid)
			forgiven := s.Forgiven.Load()
			var g Grant
			if op == opClassic {
				g.Term, err = e.TryClaim(m.pid, a.Grace)
			} else {
				g, err = e.Claim(a)
			}
			now, next := shm.UnpackOwner(s.Owner.Load())
			held := pid == m.pid && term == a.Term
			switch {
			case err != nil && held && beat.Sealed && beat.Tag == uint32(term):
				wantOwner = s.Owner.Load() // given back, and not won again
				if now != 0 || next != term {
					fail("refused with %v, and the owner word is (%d,%d)", err, now, next)
				}
			case err != nil:
			case g.Term == term && held:
				if beat.Sealed {
					fail("its sealed term was granted again")
				}
			default:
				wantOwner = s.Owner.Load()
				stale := int64(int32((uint32(epoch)-beat.Epoch)<<1)>>1) > int64(a.Grace) && int64(epoch-forgiven) > int64(a.Grace)
				switch {
				case now != m.pid || next != term+1 || g.Term != next:
					fail("granted term %d, and the owner word is (%d,%d)", g.Term, now, next)
				case beat.Tag != uint32(term):
					fail("granted over a heartbeat of another term")
				case pid != 0 && !dead && !beat.Sealed && !stale && !outranked && !(a.Policy == LowestPID && m.pid < pid):
					fail("taken from a healthy owner; grace %d, forgiven %d", a.Grace, forgiven)
				case granted[next]:
					fail("term %d was granted twice", next)
				case uint32(next)&(1<<25-1) != shm.UnpackCommit(s.Commit.Load()).Term:
					fail("granted term %d, and the commit word says %d", next, shm.UnpackCommit(s.Commit.Load()).Term)
				}
				if h := shm.UnpackHeartbeat(s.Heartbeat[next&1].Load()); h.Tag != uint32(next) {
					fail("granted, and the heartbeat is %+v", h)
				}
				granted[next] = true
			}
			if err == nil {
				m.term = g.Term
			}
		case opBeat:
			if err = e.Beat(m.pid, m.term); err == nil && (!mine && m.term != 0 || beat.Sealed || beat.Tag != uint32(m.term)) {
				fail("beat")
			}
		case opRelease:
			if err = e.Release(m.pid, m.term); (err == nil) != (owner == shm.PackOwner(m.pid, m.term)) {
				fail("release: %v", err)
			}
			if err == nil {
				wantOwner = shm.PackOwner(0, term)
			}
		case opEvict:
			dead := e.Dead(pid)
			if _, ok := e.Evict(e.Dead); ok != (dead && pid != 0) {
				fail("evicted: %v, dead: %v", ok, dead)
			} else if ok {
				wantOwner = shm.PackOwner(0, term)
			}
		case opBury:
			p, at := shm.UnpackOwner(active)
			dead := e.Dead(p)
			if _, ok := e.Bury(e.Dead); ok != (dead && p != 0) {
				fail("buried: %v, dead: %v", ok, dead)
			} else if ok {
				wantActive = shm.PackOwner(0, at)
			}
		case opTick:
			e.Tick(int64(in.Word()))
			if n := s.Epoch.Load() - epoch; n > 1 {
				fail("one tick moved the epoch by %d", n)
			}
		case opTickEpoch:
			e.TickEpoch()
		case opPromote:
			_, at := shm.UnpackOwner(active)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			err = e.Promote(ctx, Promotion{PID: m.pid, Term: m.term, Ask: in.Byte()%2 == 0})
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				err = nil
				break
			}
			self := shm.PackOwner(m.pid, m.term)
			switch {
			case err == nil && active != self && (owner != self || at >= m.term):
				fail("promoted over active term %d", at)
			case err == nil:
				wantActive = self
			case errors.Is(err, ErrLost):
				// P4 may have published and taken back.
				if wantActive = s.Active.Load(); wantActive != active && wantActive != shm.PackOwner(0, m.term) {
					fail("lost, and the active word is %#x", wantActive)
				}
			}
		case opRetire:
			if err = e.Retire(m.pid, m.term); (err == nil) != (active == shm.PackOwner(m.pid, m.term)) {
				fail("retire: %v", err)
			}
			if err == nil {
				wantActive = shm.PackOwner(0, m.term)
			}
		case opCheck:
			if err = e.Check(m.pid, m.term); (err == nil) != (owner == active && owner == shm.PackOwner(m.pid, m.term)) {
				fail("check: %v", err)
			}
		case opRead:
			e.Ring()
			e.Stale()
			e.Behind()
			e.CurrentLeader()
			e.IsLeader(m.pid)
			_ = e.Token()
		case opStamp:
			e.StampEnd(in.Word(), int64(in.Word()))
		case opControl:
			e.SetControl(Control{State: ControlState(in.Byte() % 4), Gate: in.Byte()%2 == 0, Nominee: int(in.Byte()%5) - 1, Until: int64(in.Word())})
		case opMutate, opMutateOwner:
			off := int64(in.Word() % uint64(d.Size/8) * 8)
			if op == opMutateOwner {
				off = [...]int64{512, 640, 768, 896, 904, 912, 1024, 1152, 1160, 1168, 1176, 1280}[in.Byte()%12]
			}
			d.Mutate(off, in.Byte(), in.Word())
			wantOwner, wantActive = s.Owner.Load(), s.Active.Load()
			if wantOwner != owner {
				granted = map[uint64]bool{}
			}
		}
		if !isKnown(err) {
			fail("unknown error: %v", err)
		}
		if got := s.Owner.Load(); got != wantOwner {
			fail("the owner word became %#x, not %#x", got, wantOwner)
		}
		if got := s.Active.Load(); got != wantActive {
			fail("the active word became %#x, not %#x", got, wantActive)
		}
	}
}

// seeds are programs of which some get far: mostly operations, with some damage.
func seeds() (all [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		b := make([]byte, 1500)
		for k := range b {
			b[k] = byte(r.Uint32())
		}
		if i%3 == 0 { // no damage at all: ops below opMutate alone
			for k := range b {
				if b[k]%opCount >= opMutate {
					b[k] = 0
				}
			}
		}
		all = append(all, b)
	}
	return all
}

// FuzzSegmentOps: whatever happens to the words of a live segment, the members'
// operations end, with errors that are documented; what they store follows
// from the words as they stood; and no term is granted twice unless somebody
// else wrote the owner word.
func FuzzSegmentOps(f *testing.F) {
	for i, b := range seeds() {
		f.Add(byte(i), b)
	}
	f.Fuzz(func(t *testing.T, kind byte, program []byte) {
		p := smallParams()
		p.Fence = kind % 2 // tokens or processes
		newDamaged(t, p).run(program[:min(len(program), 4096)])
	})
}

// TestEveryWordDamaged: every word of a segment that is owned and led, changed
// in each of several ways, and then everything that members do.
func TestEveryWordDamaged(t *testing.T) {
	d := newDamaged(t, smallParams())
	d.run([]byte{opClaim, 3, 3, 0, 0, opPromote, 3, 0, opBeat, 3})
	image := make([]byte, d.Size)
	if _, err := d.ReadAt(image, 0); err != nil {
		t.Fatal(err)
	}
	// Claims by all under each policy, beats, ticks, promotions, retirements.
	var all []byte
	for m := range byte(4) {
		all = append(all, opBeat, m, opClaim, m, 3, m, 0, opClassic, m, 3, 0, 0, opPromote, m, 0, opCheck, m, opTickEpoch, m, opRead, m)
	}
	for m := range byte(4) {
		all = append(all, opBury, m, opEvict, m, opRetire, m, opRelease, m, opClaim, m, 0, 0, 0)
	}
	for off := int64(0); off < d.Size; off += 8 {
		// Of the ring and the cells, only the words of some entries.
		if off > 1536+4*512+4*128 && off < d.Size-3*512 && off%1024 != 0 {
			continue
		}
		for how := range byte(6) {
			if _, err := d.WriteAt(image, 0); err != nil {
				t.Fatal(err)
			}
			d.Mutate(off, how, rand.Uint64())
			d.run(all)
		}
	}
}

// TestWordsDamagedUnderConcurrentMembers: members work while the words change
// all the time; all of them come to an end and see documented errors.
func TestWordsDamagedUnderConcurrentMembers(t *testing.T) {
	d := newDamaged(t, smallParams())
	stop := make(chan struct{})
	var members sync.WaitGroup
	for i := range 4 {
		e := again(t, d.e)
		members.Go(func() {
			pid, term := uint32(100+i), uint64(0)
			for {
				select {
				case <-stop:
					return
				default:
				}
				g, err := e.Claim(Attempt{PID: pid, Seat: i, Term: term, Grace: 3, Policy: Policy(rand.IntN(3)), Dead: e.Dead, Stamp: true})
				if !isKnown(err) {
					t.Errorf("claim: %v", err)
				}
				term = g.Term
				for _, err := range []error{
					e.Promote(t.Context(), Promotion{PID: pid, Term: term}), e.Beat(pid, term), e.Check(pid, term), e.Retire(pid, term), e.Release(pid, term),
				} {
					if !isKnown(err) {
						t.Error(err)
					}
				}
				e.Tick(shm.MonoNow())
				e.Evict(e.Dead)
				e.Bury(e.Dead)
				e.Ring()
			}
		})
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		off := rand.Int64N(d.Size/8) * 8
		if rand.IntN(2) == 0 {
			off = 512 + 8*rand.Int64N(128)
		}
		d.Mutate(off, byte(rand.Uint32()), rand.Uint64())
	}
	close(stop)
	done := make(chan struct{})
	go func() { members.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a member hangs")
	}
}
