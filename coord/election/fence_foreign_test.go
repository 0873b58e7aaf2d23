package election

import (
	"errors"
	"testing"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// TestPredecessorOfAnotherNamespaceMayRetire: nobody can take hold of it or
// prove its death from here, so the claimant waits for as long as the fence
// limit allows, and no shorter.
func TestPredecessorOfAnotherNamespaceMayRetire(t *testing.T) {
	p := smallParams()
	p.Fence, p.Tick, p.FenceLimit = shm.FenceProcess, 5*time.Millisecond, 200*time.Millisecond
	lead := func() *Election {
		d := newDamaged(t, p) // 102 sits in another namespace
		claim(t, d.e, 102, 1)
		if err := d.e.Promote(t.Context(), Promotion{PID: 102, Term: 1}); err != nil {
			t.Fatal(err)
		}
		if err := d.e.Release(102, 1); err != nil {
			t.Fatal(err)
		}
		claim(t, d.e, 103, 2)
		return d.e
	}
	if self, err := proc.Self(); err != nil || self.PIDNS == 0 {
		t.Skip("this system has no pid namespaces")
	}
	began := time.Now()
	if err := lead().Promote(t.Context(), Promotion{PID: 103, Term: 2}); !errors.Is(err, ErrFenceTimeout) {
		t.Errorf("one that goes on leading: %v", err)
	}
	if took := time.Since(began); took < p.FenceLimit {
		t.Errorf("gave up after %v, the limit is %v", took, p.FenceLimit)
	}

	p.FenceLimit = time.Minute
	e := lead()
	changed := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- e.Promote(t.Context(), Promotion{PID: 103, Term: 2, Changed: changed}) }()
	for range 2 { // it has looked, and waits again
		changed <- struct{}{}
	}
	if err := e.Retire(102, 1); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("one that retires: %v", err)
	}
}
