package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/damage"
	"github.com/standbyd/standbyd/internal/proc"
)

// isDocumented reports whether err may be returned on a damaged segment.
func isDocumented(err error) bool {
	if errors.Is(err, shm.ErrGone) {
		return true // the header is checked too, and was damaged
	}
	for _, k := range []error{
		nil, ErrHeld, ErrNotOwner, ErrInvalidPID, ErrLost, ErrFenced, ErrTermsExhausted, ErrNoWriterSlot, ErrDamaged, ErrClosed,
		election.ErrDamaged, election.ErrForbidden, election.ErrFenceTimeout, heartbeat.ErrFull, heartbeat.ErrInvalidPID, context.DeadlineExceeded,
	} {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// damaged is a lease whose words change under those who use it.
type damaged struct {
	*damage.File
	t testing.TB
	l *OwnerLease[record]
}

func newDamaged(t testing.TB) *damaged {
	t.Helper()
	l, err := Create(filepath.Join(damage.Dir(t), "lease"), rec(0), func(p *shm.Params) {
		p.Seats, p.Writers, p.Tick = 4, 3, 100*time.Microsecond
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &damaged{damage.Open(t, l.Path()), t, l}
}

// The words that the payload rests on. Damage to others never shows in it.
const (
	ownerWord  = 512
	commitWord = 1280
)

func (d *damaged) writers() int64 { return d.Size - 4096 } // the file ends with them, and with up to a page of nothing

const (
	opAcquire = iota
	opRelease
	opWrite
	opRead
	opSnapshot
	opBeat
	opTick
	opWith
	opStrictWrite // in the term of a claim that may be over
	opStrictRead
	opReopen
	opLook
	opMutate         // any word
	opMutateProtocol // of the protocol, not of the payload
	opCount
)

// user is one handle with its pid.
type user struct {
	l     *OwnerLease[record]
	pid   uint32
	claim *Claim[record]
}

// run runs a program. As long as nothing was damaged that the payload rests
// on, it is what was written last by whoever owned the lease.
func (d *damaged) run(program []byte) {
	t, s := d.t, d.l.seg
	timer := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs in program %x", program)) })
	defer timer.Stop()
	in := &damage.Script{Rest: program}
	var users [3]user
	for i := range users {
		users[i] = user{l: reopen(t, d.l), pid: uint32(100 + i)}
	}
	defer func() {
		for _, u := range users {
			u.l.Close()
		}
	}()
	granted := map[uint64]bool{}
	want, n := rec(0), uint64(0)
	clean := true
	for len(in.Rest) > 0 {
		op := in.Byte() % opCount
		u := &users[in.Byte()%3]
		owner, commit := s.Owner.Load(), s.Commit.Load()
		pid, term := shm.UnpackOwner(owner)
		own := u.l.e.OwnTerm(u.pid)
		mine := own != 0 && owner == shm.PackOwner(u.pid, own)
		mayCommit := false
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("operation %d of pid %d (term %d) on owner (%d,%d), commit %+v, clean %v: %s",
				op, u.pid, own, pid, term, shm.UnpackCommit(commit), clean, fmt.Sprintf(format, args...))
		}
		wrote := func(v record) {
			mayCommit = true
			c, before := shm.UnpackCommit(s.Commit.Load()), shm.UnpackCommit(commit)
			if c.Term != before.Term || c.Seq != before.Seq+1 {
				fail("published, and the commit word is %+v", c)
			}
			if clean && c.Slot == before.Slot && c.Cell == before.Cell {
				fail("wrote over the committed cell")
			}
			want = v
		}
		var err error
		switch op {
		case opAcquire:
			var got uint64
			if got, err = u.l.TryAcquire(u.pid, uint64(in.Byte())%8); err != nil {
				break
			}
			mayCommit = true
			if p, at := shm.UnpackOwner(s.Owner.Load()); p != u.pid || at != got {
				fail("granted term %d, and the owner word is (%d,%d)", got, p, at)
			}
			if got != term || pid != u.pid {
				if granted[got] {
					fail("term %d was granted twice", got)
				}
				if shm.UnpackCommit(s.Commit.Load()).Term != shm.CommitTerm(got) {
					fail("granted term %d, and it was not adopted", got)
				}
			}
			granted[got] = true
			u.claim, err = ClaimOf[record](u.l.view.p, Held{PID: u.pid, Term: got})
		case opRelease:
			err = u.l.Release(u.pid)
		case opWrite:
			n++
			if err = u.l.WriteAsOwner(u.pid, rec(n)); err == nil {
				if !mine {
					fail("wrote")
				}
				wrote(rec(n))
			}
		case opRead:
			var v record
			if v, err = u.l.ReadAsOwner(u.pid); err == nil && (!mine || clean && v != want) {
				fail("read %+v, want %+v", v, want)
			}
		case opSnapshot:
			v, at := u.l.Snapshot()
			if clean && (v != want || shm.CommitTerm(at) != shm.UnpackCommit(commit).Term) {
				fail("snapshot %+v of term %d, want %+v", v, at, want)
			}
		case opBeat:
			err = u.l.Beat(u.pid)
		case opTick:
			if in.Byte()%2 == 0 {
				u.l.TickEpoch()
			} else {
				u.l.e.Tick(proc.MonoNow())
			}
		case opWith:
			n++
			grace, seen := uint64(in.Byte())%8, record{}
			mayCommit = true
			if err = u.l.WithLease(u.pid, grace, func(v *record) { seen = *v; *v = rec(n) }); err == nil {
				if clean && seen != want {
					fail("saw %+v, want %+v", seen, want)
				}
				want = rec(n)
			} else if clean && seen != (record{}) && seen != want {
				fail("saw %+v, want %+v", seen, want)
			}
			if _, at := shm.UnpackOwner(s.Owner.Load()); at != term {
				if at != term+1 || granted[at] {
					fail("term %d was granted", at)
				}
				granted[at] = true
			}
		case opStrictWrite:
			if u.claim == nil {
				break
			}
			n++
			if err = u.claim.Write(rec(n)); err == nil {
				if owner != u.claim.owner {
					fail("wrote in term %d", u.claim.Term())
				}
				wrote(rec(n))
			}
		case opStrictRead:
			if u.claim == nil {
				break
			}
			var v record
			if v, err = u.claim.Read(); err == nil && (owner != u.claim.owner || clean && v != want) {
				fail("read %+v in term %d, want %+v", v, u.claim.Term(), want)
			}
		case opReopen:
			next, err := Open[record](d.l.Path())
			if err != nil { // the header is damaged
				break
			}
			u.l.Close()
			u.l, u.claim = next, nil
		case opLook:
			u.l.CurrentOwner()
			u.l.Term()
			u.l.Token()
			if u.claim != nil {
				err = u.claim.Check()
			}
		case opMutate, opMutateProtocol:
			off := int64(in.Word() % uint64(d.Size/8) * 8)
			if op == opMutateProtocol {
				off = [...]int64{640, 768, 896, 904, 912, 1024, 1152, 1160, 1168, 1176, 1408, 1536}[in.Byte()%12]
			}
			d.Mutate(off, in.Byte(), in.Word())
			if off == ownerWord || off == commitWord || off >= d.writers() {
				clean = false
			}
			if off == ownerWord {
				granted = map[uint64]bool{}
			}
			mayCommit = true
		}
		if !isDocumented(err) {
			fail("undocumented error: %v", err)
		}
		if !mayCommit && s.Commit.Load() != commit {
			fail("the commit word became %+v", shm.UnpackCommit(s.Commit.Load()))
		}
	}
}

// FuzzSegmentOps: users of a lease go on while its words are damaged. Nothing
// panics or hangs; every error is documented; no term is granted twice unless
// the owner word was written by somebody else; and the payload stays what its
// last owner wrote unless its own words were damaged.
func FuzzSegmentOps(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 30 {
		b := make([]byte, 1500)
		for k := range b {
			b[k] = byte(r.Uint32())
			switch op := b[k] % opCount; {
			case i%3 == 0 && op >= opMutate: // no damage at all
				b[k] = opWrite
			case i%3 == 1 && op == opMutate: // none that the payload rests on
				b[k] = opMutateProtocol
			}
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, program []byte) { newDamaged(t).run(program[:min(len(program), 4096)]) })
}

// TestEveryWordDamaged: every word of a lease that is owned, changed in each of
// several ways, and then everything that users do.
func TestEveryWordDamaged(t *testing.T) {
	d := newDamaged(t)
	must(d.l.TryAcquire(102, 3))(t)
	if err := d.l.WriteAsOwner(102, rec(7)); err != nil {
		t.Fatal(err)
	}
	image := make([]byte, d.Size)
	if _, err := d.ReadAt(image, 0); err != nil {
		t.Fatal(err)
	}
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	for off := int64(0); off < d.Size; off += 8 {
		if off > 1536+4*512+4*128 && off < d.writers() && off%1024 != 0 { // the ring: no decision rests on it
			continue
		}
		for how := range byte(6) {
			if _, err := d.WriteAt(image, 0); err != nil {
				t.Fatal(err)
			}
			d.Mutate(off, how, rand.Uint64())
			l := d.l
			var errs []error
			note := func(err error) { errs = append(errs, err) }
			for _, pid := range []uint32{102, 101, 100} {
				note(l.WriteAsOwner(pid, rec(8)))
				_, err := l.ReadAsOwner(pid)
				note(err)
				note(l.Beat(pid))
				l.Snapshot()
				_, err = l.TryAcquire(pid, 3)
				note(err)
				note(l.WithLease(pid, 3, func(*record) {}))
				for range 5 {
					l.TickEpoch()
				}
			}
			if seat, err := heartbeat.NewTable(l.seg).Join(self, heartbeat.JoinOptions{Index: -1}); err == nil {
				seat.Beat(1)
				seat.Leave()
			} else {
				note(err)
			}
			for _, err := range errs {
				if !isDocumented(err) {
					t.Fatalf("word at %d, change %d: %v", off, how, err)
				}
			}
		}
	}
}

// TestWordsDamagedUnderConcurrentUsers: everything, and Acquire too, comes to
// an end while the words change all the time.
func TestWordsDamagedUnderConcurrentUsers(t *testing.T) {
	d := newDamaged(t)
	stop := make(chan struct{})
	var users sync.WaitGroup
	use := func(f func(l *OwnerLease[record])) {
		l := reopen(t, d.l)
		users.Go(func() {
			for {
				select {
				case <-stop:
					l.Close()
					return
				default:
					f(l)
				}
			}
		})
	}
	note := func(what string, err error) {
		if !isDocumented(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for pid := uint32(100); pid < 102; pid++ {
		use(func(l *OwnerLease[record]) {
			_, err := l.TryAcquire(pid, 3)
			note("try", err)
			note("write", l.WriteAsOwner(pid, rec(1)))
			_, err = l.ReadAsOwner(pid)
			note("read", err)
			note("with", l.WithLease(pid, 3, func(*record) {}))
			note("beat", l.Beat(pid))
			note("release", l.Release(pid))
		})
	}
	use(func(l *OwnerLease[record]) {
		l.Snapshot()
		l.TickEpoch()
		time.Sleep(10 * time.Microsecond)
	})
	use(func(l *OwnerLease[record]) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		c, err := l.Acquire(ctx)
		note("acquire", err)
		if err != nil {
			return
		}
		note("claim's write", c.Write(rec(2)))
		_, err = c.Read()
		note("claim's read", err)
		note("claim's beat", c.Beat())
		note("claim's check", c.Check())
		note("claim's release", c.Release(ctx))
	})
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		off := rand.Int64N(d.Size/8) * 8
		if rand.IntN(2) == 0 {
			off = 512 + 8*rand.Int64N(128)
		}
		d.Mutate(off, byte(rand.Uint32()), rand.Uint64())
		if rand.IntN(4) == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	close(stop)
	done := make(chan struct{})
	go func() { users.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a user hangs")
	}
}
