package election

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// treeEvery is how often the process table is read at least while a tree ends.
const treeEvery = 2 * time.Millisecond

// fell kills what a dead predecessor has left running, and waits until all of
// it is proven dead. Two ways look, and both must find nothing:
//
//   - Its cgroup, if the supervisor made one for it (proc.CgroupRecord): the
//     kernel says when nobody is in it any more, whoever left the group, the
//     session or dropped every variable. Ended as a whole where this process
//     may, else one by one.
//   - Its process group and the marks in the environment: two readings of the
//     process table in a row show no more. A process that is born while one is
//     read has a parent that the same or the next one shows. This finds who
//     was moved to another cgroup, and everything where there are none.
//
// Whoever was seen once is waited for by its pidfd, since a process that is
// exiting shows its marks no longer. In between it waits as for a predecessor
// that was killed: the end of a process that is waited for ends the wait, and
// what nothing tells of is looked for ever more rarely.
func (e *Election) fell(ctx context.Context, p Promotion, pid uint32, deadline time.Time) error {
	marks := []string{markPID + strconv.Itoa(int(pid)), markSegment + e.seg.Path()}
	group := e.treeGroup(pid)
	felled := map[proc.Identity]*proc.Handle{}
	defer func() {
		for _, h := range felled {
			h.Close()
		}
	}()
	begun := time.Now()
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
		var one *proc.Handle
		for _, h := range felled {
			if !e.provenBy(h) {
				one = h
				alive++
			}
		}
		held, why := group.end(e.seg.Params().Proof == shm.ProofExiting)
		if alive == 0 && clean >= 2 && !held {
			return nil
		}
		if held && alive == 0 && time.Now().After(deadline) {
			return fmt.Errorf("fence the process tree of pid %d: its cgroup %s is not empty%s: %w", pid, group.Path(), why, ErrFenceTimeout)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("fence the process tree of pid %d: %d of its processes do not end: %w", pid, alive, ErrFenceTimeout)
		}
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("fence the process tree of pid %d before term %d: %w", pid, p.Term, err)
		}
		switch again := pauseAfterKill(time.Since(begun)); {
		case one != nil && e.seg.Params().Proof == shm.ProofGone:
			one.Pause(treeEvery)
		case one != nil:
			one.Pause(again)
		case held, clean == 0:
			proc.Pause(again)
		}
	}
}

// treeGroup is the cgroup of a predecessor; the zero one if there is none, or
// if this very process is in it: then it is not the predecessor's alone.
func (e *Election) treeGroup(pid uint32) treeGroup {
	id, ok := e.identity(pid)
	if !ok {
		return treeGroup{}
	}
	c, _ := proc.RecordedCgroup(filepath.Dir(e.seg.Path()), id)
	if c == nil {
		return treeGroup{}
	}
	if pids, err := c.PIDs(); err == nil && slices.Contains(pids, os.Getpid()) {
		return treeGroup{}
	}
	return treeGroup{Cgroup: c}
}

type treeGroup struct {
	*proc.Cgroup
	empty int // times in a row that no process was listed
}

// end kills what is in the cgroup and says whether something is left. Where
// "exiting" is proof enough, that nobody is listed twice in a row is: a process
// all of whose threads are ending is listed no more.
func (g *treeGroup) end(exiting bool) (held bool, why string) {
	if g.Cgroup == nil {
		return false, ""
	}
	populated, err := g.Populated()
	if err == nil && !populated {
		return false, ""
	}
	if err == nil {
		err = g.End()
	}
	if err != nil {
		why = " (" + err.Error() + ")"
	}
	pids, err := g.PIDs()
	if g.empty++; err != nil || len(pids) > 0 {
		g.empty = 0
	}
	return !exiting || g.empty < 2, why
}
