package lease

import (
	"encoding/binary"
	"fmt"
	"hash/crc64"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// A writer slot is two cells that one handle alone writes. Its head says who
// holds it, so that others can prove the holder's death:
//
//	taking   CAS phase (free or dead, i) -> (joining, i+1, pid); then the
//	         identity and its check word; then CAS to (joined, i+1, pid)
//	freeing  CAS phase (joined, i, pid) -> (free, i)
//
// A taker that is stopped in the middle and taken for dead (its pid is not to
// be seen from another pid namespace) may store its identity over that of the
// next holder. The check word covers the phase word too, so such a mixture
// names nobody: the slot is then freed by Close alone, and never given away
// under a living writer.

var checkTable = crc64.MakeTable(crc64.ECMA)

func slotCheck(phase uint64, id proc.Identity) uint64 {
	var b [40]byte
	for i, w := range [...]uint64{phase, uint64(id.PID), id.Start, id.Boot, id.PIDNS} {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	return crc64.Checksum(b[:], checkTable)
}

// slotHolder is who holds a slot whose phase word is phase; ok is false if
// what stands there is not whole.
func slotHolder(w *shm.WriterWords, phase uint64) (id proc.Identity, ok bool) {
	id = proc.Identity{PID: int(w.PID.Load()), Start: w.Start.Load(), Boot: w.Boot.Load(), PIDNS: w.PIDNS.Load()}
	check := w.Check.Load()
	return id, w.Phase.Load() == phase && check == slotCheck(phase, id)
}

// slotFree reports whether a slot whose phase word is phase may be taken. Only
// with judge it looks at /proc.
func slotFree(w *shm.WriterWords, phase uint64, self proc.Identity, judge bool) bool {
	p := shm.UnpackPhase(phase)
	switch {
	case p.Phase == shm.PhaseFree:
		return true
	case !judge:
		return false
	case p.Phase == shm.PhaseJoining:
		// It has written no cell yet; only its pid is known.
		return proc.Judge(proc.Identity{PID: int(p.PID), Boot: self.Boot, PIDNS: self.PIDNS}) == proc.Gone
	case p.Phase == shm.PhaseJoined:
		id, ok := slotHolder(w, phase)
		return ok && proc.Judge(id) == proc.Gone
	}
	return false
}

// takeSlot takes a slot of seg for this process: a free one, else one whose
// holder is proven gone. It returns its number and its phase word.
func takeSlot(seg *shm.Segment) (slot int, phase uint64, err error) {
	self, err := proc.Self()
	if err != nil {
		return -1, 0, err
	}
	for _, judge := range [...]bool{false, true} {
		for i := range seg.Writers {
			w := &seg.Writers[i]
			old := w.Phase.Load()
			if !slotFree(w, old, self, judge) {
				continue
			}
			if phase, ok := enterSlot(w, old, self); ok {
				return i, phase, nil
			}
		}
	}
	return -1, 0, fmt.Errorf("write to the payload of %s: all %d slots are taken: %w", seg.Path(), len(seg.Writers), ErrNoWriterSlot)
}

func enterSlot(w *shm.WriterWords, old uint64, self proc.Identity) (phase uint64, ok bool) {
	p := shm.Phase{Phase: shm.PhaseJoining, Incarnation: shm.UnpackPhase(old).Incarnation + 1, PID: uint32(self.PID)}
	joining := p.Pack()
	if !w.Phase.CompareAndSwap(old, joining) {
		return 0, false
	}
	p.Phase = shm.PhaseJoined
	joined := p.Pack()
	w.PID.Store(uint64(self.PID))
	w.Start.Store(self.Start)
	w.Boot.Store(self.Boot)
	w.PIDNS.Store(self.PIDNS)
	w.Check.Store(slotCheck(joined, self))
	return joined, w.Phase.CompareAndSwap(joining, joined)
}

// leaveSlot gives back a slot that was taken with this phase word.
func leaveSlot(w *shm.WriterWords, phase uint64) {
	w.Phase.CompareAndSwap(phase, shm.Phase{Incarnation: shm.UnpackPhase(phase).Incarnation}.Pack())
}
