package lease

import (
	"sync"
	"testing"
)

// While a WithLease runs its function the handle is lent: who writes through it
// has cells of its own, and the function's value is published last.
func TestR9WritesWhileTheHandleIsLent(t *testing.T) {
	l := newLease(t)
	for n := range uint64(4) {
		err := l.WithLease(low, 3, func(r *record) {
			before := *r
			if err := l.WriteAsOwner(low, rec(1000+n)); err != nil {
				t.Fatal(err)
			}
			wantValue(t, l, 1000+n, n+1)
			if *r != before {
				t.Fatalf("the function's copy changed to %v", *r)
			}
			*r = rec(n)
		})
		if err != nil {
			t.Fatal(err)
		}
		wantValue(t, l, n, n+1)
	}
	if w := Handles()[0].Write; len(Handles()) == 1 && w.OK != 8 {
		t.Errorf("writes are counted as %+v, want 8", w)
	}
}

// The last slot is the handle's own: a write beside a lent handle finds none.
func TestAWriteBesideALentHandleNeedsASlot(t *testing.T) {
	l := newLease(t, WithWriterSlots(1))
	err := l.WithLease(low, 3, func(r *record) {
		// Takes the only slot; the function's own write then finds none.
		if err := l.WriteAsOwner(low, rec(7)); err != nil {
			t.Fatal(err)
		}
	})
	wantErr(t, err, ErrNoWriterSlot)
	wantValue(t, l, 7, 1)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again := must(Open[record](l.Path()))(t)
	defer again.Close()
	if err := again.WithLease(low, 3, func(r *record) { *r = rec(8) }); err != nil {
		t.Fatal(err)
	}
	err = again.WithLease(low, 3, func(r *record) {
		wantErr(t, again.WriteAsOwner(low, rec(9)), ErrNoWriterSlot)
		*r = rec(10)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, again, 10, 3)
}

// Goroutines of one owner that share a handle, each with WithLease and with
// writes: every value is whole.
func TestR9LentAndHeldFromManyGoroutines(t *testing.T) {
	l := newLease(t)
	var all sync.WaitGroup
	for g := range uint64(4) {
		all.Go(func() {
			for n := range uint64(2000) {
				if g%2 == 0 {
					_ = l.WithLease(low, 3, func(r *record) {
						if r.torn() {
							t.Error("torn value")
						}
						*r = rec(g<<32 | n)
					})
				} else {
					_ = l.WriteAsOwner(low, rec(g<<32|n))
				}
				if v, _ := l.Snapshot(); v.torn() {
					t.Error("torn snapshot")
				}
			}
		})
	}
	all.Wait()
}
