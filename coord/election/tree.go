package election

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// A worker's descendants inherit these from it: whose they are, and of which
// role. The launch stage sets the first, the supervisor the second.
const (
	markPID     = "STANDBYD_PID="
	markSegment = "STANDBYD_SEGMENT="
)

// treeEvery is how often the process table is read while a tree ends.
const treeEvery = 2 * time.Millisecond

// fell kills what a dead predecessor has left running, and waits until all of
// it is proven dead and two readings of the process table in a row show no
// more: a process that is born while one is read has a parent that the same or
// the next one shows. Whoever was seen once is waited for by its pidfd, since
// a process that is exiting shows its marks no longer.
func (e *Election) fell(ctx context.Context, p Promotion, pid uint32, deadline time.Time) error {
	marks := []string{markPID + strconv.Itoa(int(pid)), markSegment + e.seg.Path()}
	felled := map[proc.Identity]*proc.Handle{}
	defer func() {
		for _, h := range felled {
			h.Close()
		}
	}()
	for clean := 0; ; {
		if e.seg.Owner.Load() != shm.PackOwner(p.PID, p.Term) {
			return fmt.Errorf("fence the process tree of pid %d before term %d: %w", pid, p.Term, ErrLost)
		}
		left, ok := proc.Tree(int(pid), marks)
		if !ok {
			return fmt.Errorf("fence the process tree of pid %d: the process table cannot be read here: %w", pid, ErrFenceTimeout)
		}
		clean++
		for _, id := range left {
			if felled[id] != nil {
				continue
			}
			clean = 0
			h, err := proc.OpenHandle(id)
			if err != nil {
				continue // dead meanwhile, or the next reading shows it again
			}
			felled[id] = h
			_ = h.Signal(syscall.SIGKILL) // if it does not work, the wait says so
		}
		alive := 0
		for _, h := range felled {
			if !e.proven(h.Judge()) {
				alive++
			}
		}
		if alive == 0 && clean >= 2 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("fence the process tree of pid %d: %d of its processes do not end: %w", pid, alive, ErrFenceTimeout)
		}
		select {
		case <-time.After(treeEvery):
		case <-ctx.Done():
			return fmt.Errorf("fence the process tree of pid %d before term %d: %w", pid, p.Term, context.Cause(ctx))
		}
	}
}
