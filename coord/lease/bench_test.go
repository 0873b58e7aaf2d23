package lease

import (
	"sync"
	"testing"
)

// The benchmarks stand beside those of an uncontended sync.Mutex around the
// same value: what counts is their ratio in one run.

var guarded struct {
	sync.Mutex
	value record
}

func BenchmarkMutexLockUnlock(b *testing.B) {
	for b.Loop() {
		guarded.Lock()
		guarded.Unlock() //lint:ignore SA2001 the pair alone is measured
	}
}

func BenchmarkMutexRead(b *testing.B) {
	var v record
	for b.Loop() {
		guarded.Lock()
		v = guarded.value
		guarded.Unlock()
	}
	_ = v
}

func BenchmarkMutexWrite(b *testing.B) {
	v := rec(1)
	for b.Loop() {
		guarded.Lock()
		guarded.value = v
		guarded.Unlock()
	}
}

func benchLease(b *testing.B) *OwnerLease[record] {
	l := newLease(b)
	l.TryAcquire(low, 3)
	l.WriteAsOwner(low, rec(2))
	return l
}

func BenchmarkAcquireRelease(b *testing.B) {
	l := newLease(b)
	for b.Loop() {
		l.TryAcquire(low, 3)
		l.Release(low)
	}
}

func BenchmarkAcquireByTheOwner(b *testing.B) {
	l := benchLease(b)
	for b.Loop() {
		l.TryAcquire(low, 3)
	}
}

func BenchmarkAcquireRefused(b *testing.B) {
	l := benchLease(b)
	for b.Loop() {
		l.TryAcquire(high, 3)
	}
}

func BenchmarkWithLease(b *testing.B) {
	l := newLease(b)
	l.WithLease(low, 3, func(r *record) { r.N++ })
	for b.Loop() {
		l.WithLease(low, 3, func(r *record) { r.N++ })
	}
}

func BenchmarkReadAsOwner(b *testing.B) {
	l := benchLease(b)
	for b.Loop() {
		l.ReadAsOwner(low)
	}
}

func BenchmarkWriteAsOwner(b *testing.B) {
	l := benchLease(b)
	v := rec(3)
	for b.Loop() {
		l.WriteAsOwner(low, v)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	l := benchLease(b)
	for b.Loop() {
		l.Snapshot()
	}
}

func BenchmarkBeatSameEpoch(b *testing.B) {
	l := benchLease(b)
	for b.Loop() {
		l.Beat(low)
	}
}

func BenchmarkBeatNewEpoch(b *testing.B) {
	l := benchLease(b)
	for b.Loop() {
		l.TickEpoch()
		l.Beat(low)
	}
}

func BenchmarkTickEpoch(b *testing.B) {
	l := benchLease(b)
	for b.Loop() {
		l.TickEpoch()
	}
}

func BenchmarkIsOwner(b *testing.B) {
	l := benchLease(b)
	for b.Loop() {
		l.IsOwner(low)
	}
}

func benchClaim(b *testing.B) *Claim[record] {
	l := benchLease(b)
	l.seg.Active.Store(l.seg.Owner.Load())
	return claimOf(l.view, Held{PID: low, Term: 1})
}

func BenchmarkClaimCheck(b *testing.B) {
	c := benchClaim(b)
	for b.Loop() {
		if c.Check() != nil {
			b.Fatal("fenced")
		}
	}
}

func BenchmarkClaimRead(b *testing.B) {
	c := benchClaim(b)
	for b.Loop() {
		c.Read()
	}
}

func BenchmarkClaimWrite(b *testing.B) {
	c := benchClaim(b)
	v := rec(3)
	for b.Loop() {
		c.Write(v)
	}
}

func BenchmarkWriteLargest(b *testing.B) {
	l, err := Create(b.TempDir()+"/big", page{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	l.TryAcquire(low, 3)
	v := pageOf(1, 1)
	b.SetBytes(int64(len(v.Fill)) * 8)
	for b.Loop() {
		l.WriteAsOwner(low, v)
	}
}

func BenchmarkSnapshotLargest(b *testing.B) {
	l, err := Create(b.TempDir()+"/big", page{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.SetBytes(4096)
	for b.Loop() {
		l.Snapshot()
	}
}

// Owner and readers at once: what reading costs the writer.
func BenchmarkWriteWhileOthersRead(b *testing.B) {
	l := benchLease(b)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				l.Snapshot()
			}
		}
	})
	v := rec(3)
	for b.Loop() {
		l.WriteAsOwner(low, v)
	}
	close(stop)
	wg.Wait()
}
