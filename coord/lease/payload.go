package lease

import (
	"fmt"
	"reflect"
	"sync/atomic"

	"github.com/standbyd/standbyd/coord/shm"
)

// Payload is one handle's access to the payload of an open segment, whatever
// the type of the value: [ViewOf] and [ClaimOf] give it one. It reads without
// asking anybody. Its first write takes one of the segment's writer slots,
// which Close gives back; a process needs one Payload per segment, and writes
// through one Payload exclude each other. Safe for concurrent use.
type Payload struct {
	seg    *shm.Segment
	commit *atomic.Uint64
	// cells by the seven bits of the commit word that name one; nil where the
	// segment has none.
	cells [128][]atomic.Uint64

	_     [128]byte // the lock is written by every write, the rest by none
	busy  writeLock
	slot  int // -1: none yet. It and what follows are guarded by busy.
	phase uint64
	done  bool
}

// PayloadOf is a new handle's access to the payload of seg, which must stay
// open for as long as it is used.
func PayloadOf(seg *shm.Segment) *Payload {
	p := &Payload{seg: seg, commit: seg.Commit, slot: -1}
	for i := range seg.Writers {
		for c, cell := range seg.Writers[i].Cells {
			p.cells[2*i+c] = cell
		}
	}
	return p
}

// Close gives the writer slot back, after the write that is under way. The
// segment stays open. Writes fail with ErrClosed afterwards; reads go on.
func (p *Payload) Close() error {
	p.busy.lock()
	defer p.busy.unlock()
	if p.slot >= 0 {
		leaveSlot(&p.seg.Writers[p.slot], p.phase)
		p.slot = -1
	}
	p.done = true
	return nil
}

// fits checks that values of type t, size bytes long, can be this payload.
func (p *Payload) fits(t reflect.Type, size int) error {
	params := p.seg.Params()
	switch {
	case !p.seg.HasPayload():
		return fmt.Errorf("segment %s has no payload: %w", p.seg.Path(), ErrPayload)
	case params.PayloadType >= 0 && params.PayloadType != size:
		return fmt.Errorf("payload type %v has %d bytes, segment %s was created for one of %d: %w",
			t, size, p.seg.Path(), params.PayloadType, ErrPayload)
	case size > params.Cell:
		return fmt.Errorf("payload type %v has %d bytes, the cells of segment %s have %d: %w",
			t, size, p.seg.Path(), params.Cell, ErrPayload)
	}
	return nil
}

// read copies the committed value into dst and returns the commit word that it
// stood under. (Rules R7 and R8.)
func (p *Payload) read(dst []byte) (commit uint64, err error) {
	for {
		c := p.commit.Load()
		cell := p.cells[c>>32&127]
		if len(cell)*8 < len(dst) {
			return c, ErrDamaged
		}
		shm.LoadWords(dst, cell)
		if p.commit.Load() == c {
			return c, nil
		}
	}
}

// write publishes src as the value of the owner (pid, term), packed in owner.
// ErrNotOwner if it does not own, or has lost the payload to a later term;
// then nothing was published. (Rules R5 and R6.)
//
// A write is begin, stores into the cell, publish. A process may be stopped or
// killed between any two instructions of it.
func (p *Payload) write(owner uint64, src []byte) error {
	p.busy.lock()
	d, err := p.begin(owner)
	if err == nil {
		shm.StoreWords(d.cell, src)
		err = p.publish(d)
	}
	p.busy.unlock()
	return err
}

// draft is a write that is not published: a cell that only this handle writes,
// and that no reader looks at.
type draft struct {
	owner uint64 // owner word of the writer
	seen  uint64 // commit word that the cell was chosen under
	at    uint64 // the cell, in its place in the commit word
	cell  []atomic.Uint64
}

// begin chooses the cell for a write by owner: of the two of this handle's
// slot the one that is not committed.
func (p *Payload) begin(owner uint64) (draft, error) {
	for {
		c := p.commit.Load()
		if !sameTerm(c, owner) || p.seg.Owner.Load() != owner {
			return draft{}, ErrNotOwner
		}
		if p.slot < 0 {
			// The commit word is read again: what the last holder of the slot
			// committed must be seen before a cell of it is chosen.
			if err := p.enter(); err != nil {
				return draft{}, err
			}
			continue
		}
		at := uint64(p.slot) << 1
		if c>>32&127 == at {
			at++
		}
		return draft{owner: owner, seen: c, at: at << 32, cell: p.cells[at]}, nil
	}
}

// enter takes a writer slot.
func (p *Payload) enter() error {
	if p.done {
		return ErrClosed
	}
	var err error
	p.slot, p.phase, err = takeSlot(p.seg)
	return err
}

// publish makes the draft's cell the committed one. It fails when the commit
// word has passed to another term. Another handle of the same owner may have
// published in between: then only the sequence number differs, for the cells
// of our slot are committed by nobody else.
func (p *Payload) publish(d draft) error {
	for c := d.seen; sameTerm(c, d.owner); c = p.commit.Load() {
		next := c>>39<<39 | d.at | uint64(uint32(c)+1)
		if p.commit.CompareAndSwap(c, next) {
			return nil
		}
	}
	return ErrNotOwner
}

// sameTerm reports whether commit word c belongs to the term of an owner word.
func sameTerm(c, owner uint64) bool { return (c>>39^owner)&(1<<25-1) == 0 }

// termOf is the whole term of commit word c, whose 25 bits are those of a term
// that an owner word had before it was owner.
func termOf(c, owner uint64) uint64 {
	_, term := shm.UnpackOwner(owner)
	return term - (term-c>>39)&(1<<25-1)
}
