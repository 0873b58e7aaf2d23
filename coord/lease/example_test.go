package lease_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/standbyd/standbyd/coord/lease"
)

// Progress is what the owners of a lease hand on to each other.
type Progress struct {
	Batch  uint64
	Offset int64
}

func Example() {
	dir, err := os.MkdirTemp("", "lease")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	// Every process that works on the same thing opens the same file.
	l, err := lease.OpenOrCreate(filepath.Join(dir, "import.lease"), Progress{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	// Waits until the lease is free, or its owner is dead or hangs.
	ctx := context.Background()
	c, err := l.Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Release(ctx)

	p, err := c.Read() // where the last owner stopped, however it ended
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if err := c.Check(); err != nil {
			log.Fatal(err) // another one owns it: have no more effects
		}
		p.Batch++
		p.Offset += 4096
		if err := c.Write(p); err != nil {
			log.Fatal(err)
		}
	}
	now, term := l.Snapshot()
	fmt.Printf("batch %d at %d, term %d\n", now.Batch, now.Offset, term)
	// Output: batch 3 at 12288, term 1
}

func ExampleOwnerLease_TryAcquire() {
	dir, _ := os.MkdirTemp("", "lease")
	defer os.RemoveAll(dir)
	l, err := lease.Create(filepath.Join(dir, "l"), Progress{Batch: 7})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()

	const mine, theirs = 4100, 4200 // pids
	term, _ := l.TryAcquire(theirs, lease.DefaultGrace)
	fmt.Println("4200 owns term", term)

	// A lower pid takes the lease, a higher one is refused.
	term, _ = l.TryAcquire(mine, lease.DefaultGrace)
	_, err = l.TryAcquire(theirs, lease.DefaultGrace)
	fmt.Println("4100 owns term", term, "and 4200 is refused:", errors.Is(err, lease.ErrHeld))

	// An owner that does not beat for more than grace epochs is replaced.
	for range lease.DefaultGrace + 1 {
		l.TickEpoch()
	}
	term, _ = l.TryAcquire(theirs, lease.DefaultGrace)
	fmt.Println("4200 owns term", term)
	fmt.Println("4100 may write:", l.WriteAsOwner(mine, Progress{}) == nil)
	// Output:
	// 4200 owns term 1
	// 4100 owns term 2 and 4200 is refused: true
	// 4200 owns term 3
	// 4100 may write: false
}

func ExampleOwnerLease_WithLease() {
	dir, _ := os.MkdirTemp("", "lease")
	defer os.RemoveAll(dir)
	l, err := lease.Create(filepath.Join(dir, "l"), Progress{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	err = l.WithLease(uint32(os.Getpid()), lease.DefaultGrace, func(p *Progress) { p.Batch++ })
	p, _ := l.Snapshot()
	_, owned := l.CurrentOwner()
	fmt.Println(p.Batch, owned, err)
	// Output: 1 false <nil>
}

func ExampleClaim() {
	dir, _ := os.MkdirTemp("", "lease")
	defer os.RemoveAll(dir)
	l, err := lease.Create(filepath.Join(dir, "l"), Progress{}, lease.WithGeneration(17))
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	ctx := context.Background()
	first, _ := l.Acquire(ctx)
	fmt.Println("token", first.RoleToken(), "may act:", first.Check() == nil)
	first.Release(ctx)

	second, _ := l.Acquire(ctx)
	defer second.Release(ctx)
	fmt.Println("token", second.RoleToken(), "is higher:", second.Token() > first.Token())
	fmt.Println("the first may still act:", first.Check() == nil)
	// Output:
	// token 17.1 may act: true
	// token 17.2 is higher: true
	// the first may still act: false
}

func ExampleView() {
	dir, _ := os.MkdirTemp("", "lease")
	defer os.RemoveAll(dir)
	l, err := lease.Create(filepath.Join(dir, "l"), Progress{Batch: 7})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	// Reading asks nobody and costs the owner nothing.
	p, term := l.View().Snapshot()
	fmt.Println(p.Batch, term)
	// Output: 7 0
}

// The handles of a process with their counters, on its /debug/vars.
func ExampleHandles() {
	dir, err := os.MkdirTemp("", "lease")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := lease.Create(dir+"/jobs", struct{ Next uint64 }{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	expvar.Publish("leases", lease.Var{})

	l.TryAcquire(7, lease.DefaultGrace)
	l.TryAcquire(8, lease.DefaultGrace)
	for _, h := range lease.Handles() {
		if h.Path == l.Path() {
			fmt.Println(h.Owner, h.Claim.OK, h.Claim.Refused)
		}
	}
	// Output: 7 1 1
}
