package coord

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// A rehearsal plays to its end, once, and changes nothing that others can see.
func TestRehearsal(t *testing.T) {
	for name, fence := range map[string]uint8{"token": shm.FenceToken, "process": shm.FenceProcess, "tree": shm.FenceTree} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "segment")
			p := shm.DefaultParams()
			p.Fence, p.Preempt, p.Grace = fence, shm.PreemptPriority, 1<<20
			seg, err := shm.Create(path, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			seg.Close()
			m := joinAt(t, path)
			see := func() [6]uint64 {
				s := m.mapped.seg
				return [6]uint64{s.Owner.Load(), s.Active.Load(), s.Commit.Load(), s.Joins.Load(), s.Heartbeat[0].Load(), s.Heartbeat[1].Load()}
			}
			before, mine := see(), m.seat.Member()
			scratch, err := m.play()
			if err != nil {
				t.Fatal(err)
			}
			if scratch.Params().Fence == shm.FenceTree {
				t.Fatal("it looks for the descendants of whoever has the number of its predecessor")
			}
			if _, term := shm.UnpackOwner(scratch.Owner.Load()); term != 3 || scratch.Commit.Load() == 0 {
				t.Errorf("it ended in term %d with commit word %#x; two takeovers, each with a write, follow term 1", term, scratch.Commit.Load())
			}
			if !m.rehearse() || m.rehearse() {
				t.Error("it is not played exactly once")
			}
			if after := see(); after != before {
				t.Errorf("the segment's words are %x, before they were %x", after, before)
			}
			if now := m.seat.Member(); now.Ready != mine.Ready || now.Racing != mine.Racing || now.JoinSeq != mine.JoinSeq {
				t.Errorf("the seat says %+v, before it said %+v", now, mine)
			}
		})
	}
}

// The predecessor of a rehearsal is nobody that could live.
func TestRehearsedPredecessorIsDead(t *testing.T) {
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	seg, err := shm.Scratch(shm.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	if err := bequeath(t.Context(), seg, self); err != nil {
		t.Fatal(err)
	}
	owner, _ := shm.UnpackOwner(seg.Owner.Load())
	m, ok := heartbeat.NewTable(seg).Of(owner)
	if !ok || proc.Judge(m.Identity) != proc.Gone || m.Identity.PID == os.Getpid() {
		t.Errorf("it is %+v, %v", m.Identity, ok)
	}
}
