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

// fell kills what a dead predecessor has left running, and waits until two
// readings of the process table in a row show nothing of it: a process that is
// born while one is read has a parent that the same or the next one shows.
func (e *Election) fell(ctx context.Context, p Promotion, pid uint32, deadline time.Time) error {
	number := strconv.Itoa(int(pid))
	marks := []string{markPID + number, markSegment + e.seg.Path()}
	for clean := 0; clean < 2; {
		left, ok := proc.Tree(int(pid), marks)
		if !ok {
			return fmt.Errorf("fence the process tree of pid %d: the process table cannot be read here: %w", pid, ErrFenceTimeout)
		}
		if len(left) == 0 {
			clean++
			continue
		}
		clean = 0
		if e.seg.Owner.Load() != shm.PackOwner(p.PID, p.Term) {
			return fmt.Errorf("fence the process tree of pid %d before term %d: %w", pid, p.Term, ErrLost)
		}
		for _, id := range left {
			if h, err := proc.OpenHandle(id); err == nil {
				_ = h.Signal(syscall.SIGKILL) // the next reading shows whether it worked
				h.Close()
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("fence the process tree of pid %d: %d of its processes, %v first, do not end: %w", pid, len(left), left[0], ErrFenceTimeout)
		}
		select {
		case <-time.After(treeEvery):
		case <-ctx.Done():
			return fmt.Errorf("fence the process tree of pid %d before term %d: %w", pid, p.Term, context.Cause(ctx))
		}
	}
	return nil
}
