package lease

import (
	"testing"

	"github.com/standbyd/standbyd/coord/shm"
)

// Payloads as one would write them first, under the schedules that the real
// one passes: these tests show that the schedules can find the faults.

// naive is a payload in which the owners share the cells.
type naive struct {
	cells  []record
	seq    int // cells[seq%len(cells)] is committed
	halves func()
}

// half copies the first half of r into a cell and leaves the rest to halves.
func (n *naive) half(cell int, r record) {
	c := &n.cells[cell]
	c.N, c.Fill[0], c.Fill[1] = r.N, r.Fill[0], r.Fill[1]
	n.halves = func() { c.Fill[2], c.Fill[3], c.Sum = r.Fill[2], r.Fill[3], r.Sum }
}

func (n *naive) write(r record) {
	n.cells[(n.seq+1)%len(n.cells)] = r
	n.seq++
}

func (n *naive) read() record { return n.cells[n.seq%len(n.cells)] }

// In place: a writer killed in the middle leaves a torn value.
func TestNaiveWriteInPlaceIsTornByAKill(t *testing.T) {
	n := &naive{cells: []record{rec(1)}}
	n.half(0, rec(2)) // killed here
	if !n.read().torn() {
		t.Error("the schedule does not find the fault")
	}
}

// Cells in rotation: for any number of them, a writer paused in the middle
// damages a committed value when it wakes.
func TestNaiveRotationIsDamagedByAPause(t *testing.T) {
	for cells := 2; cells <= 64; cells *= 2 {
		n := &naive{cells: make([]record, cells)}
		n.cells[0] = rec(1)
		n.half(1%cells, rec(2)) // paused here, and loses the lease
		for i := range cells + 1 {
			n.write(rec(uint64(100 + i))) // its successor comes round to the same cell
		}
		n.halves()
		if !n.read().torn() {
			t.Errorf("%d cells: the schedule does not find the fault", cells)
		}
	}
}

// Without adoption a paused owner publishes after its successor has read: the
// successor's update or its own is lost, and both were told that it is there.
func TestNaivePublishWithoutAdoptionLosesAnUpdate(t *testing.T) {
	l := newLease(t)
	term := must(l.TryAcquire(high, 3))(t)
	half, err := beginHalf(l.view.p, shm.PackOwner(high, term), rec(2))
	if err != nil {
		t.Fatal(err)
	}
	other := reopen(t, l)
	commit := l.seg.Commit.Load()
	must(other.TryAcquire(low, 3))(t)
	l.seg.Commit.Store(commit) // as if the claim had not adopted
	before, _ := other.Snapshot()
	err = half.finish()
	after, _ := other.Snapshot()
	if err != nil || before == after {
		t.Error("the schedule does not find the fault")
	}
	// The same with adoption: refused.
	l = newLease(t)
	term = must(l.TryAcquire(high, 3))(t)
	if half, err = beginHalf(l.view.p, shm.PackOwner(high, term), rec(2)); err != nil {
		t.Fatal(err)
	}
	other = reopen(t, l)
	must(other.TryAcquire(low, 3))(t)
	before, _ = other.Snapshot()
	wantErr(t, half.finish(), ErrNotOwner)
	if after, _ = other.Snapshot(); before != after {
		t.Error("a refused write was published")
	}
}
