package lease

import "testing"

func TestHotOperationsDoNotAllocate(t *testing.T) {
	l := newLease(t)
	must(l.TryAcquire(low, 3))(t)
	l.WriteAsOwner(low, rec(2)) // takes the slot
	c := claimOf(l.view, Held{PID: low, Term: 1})
	held := map[string]func(){
		"TryAcquire by the owner": func() { l.TryAcquire(low, 3) },
		"TryAcquire refused":      func() { l.TryAcquire(high, 3) },
		"ReadAsOwner":             func() { l.ReadAsOwner(low) },
		"ReadAsOwner refused":     func() { l.ReadAsOwner(high) },
		"WriteAsOwner":            func() { l.WriteAsOwner(low, record{}) },
		"WriteAsOwner refused":    func() { l.WriteAsOwner(high, record{}) },
		"Beat":                    func() { l.TickEpoch(); l.Beat(low) },
		"Beat again":              func() { l.Beat(low) },
		"TickEpoch":               func() { l.TickEpoch() },
		"Snapshot":                func() { l.Snapshot() },
		"IsOwner":                 func() { l.IsOwner(low) },
		"CurrentOwner":            func() { l.CurrentOwner() },
		"Token":                   func() { l.Token() },
		"Claim.Read":              func() { c.Read() },
		"Claim.Write":             func() { c.Write(record{}) },
		"Claim.Check":             func() { c.Check() },
		"Claim.Beat":              func() { c.Beat() },
		"Claim.Token":             func() { c.Token() },
		"View.Snapshot":           func() { c.View().Snapshot() },
	}
	for name, f := range held {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	l.Release(low)
	vacant := map[string]func(){
		"TryAcquire and Release": func() { l.TryAcquire(low, 3); l.Release(low) },
		"Release refused":        func() { l.Release(high) },
		"WithLease":              func() { l.WithLease(low, 3, func(r *record) { r.N++ }) },
		"two pids by turns":      func() { l.TryAcquire(high, 3); l.TryAcquire(low, 3); l.Release(low) },
	}
	for name, f := range vacant {
		f()
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	big, err := Create(t.TempDir()+"/big", page{})
	if err != nil {
		t.Fatal(err)
	}
	defer big.Close()
	big.TryAcquire(low, 3)
	v := pageOf(1, 1)
	for name, f := range map[string]func(){
		"WriteAsOwner of 4096 bytes": func() { big.WriteAsOwner(low, v) },
		"ReadAsOwner of 4096 bytes":  func() { big.ReadAsOwner(low) },
		"Snapshot of 4096 bytes":     func() { big.Snapshot() },
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
