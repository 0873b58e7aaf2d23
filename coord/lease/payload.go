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
	seg *shm.Segment
	hot *shm.HotWords
	// cells by the seven bits of the commit word that name one; nowhere where
	// the segment has none.
	cells [128]shm.Cell

	_     [128]byte // the lock is written by every write, the rest by none
	busy  writeLock
	slot  int    // -1: none yet. It and what follows are guarded by busy.
	phase uint64 // of the slot
	ready uint64 // owner word for which seen and next are right; 0 none
	seen  uint64 // the last commit word that was loaded or published
	next  uint64 // the commit word that the next write publishes
	why   error  // of the last write that failed
	done  bool

	aside atomic.Pointer[Payload] // for writes while the handle is lent: see besideLent

	_     [128]byte // what is counted is the owner's too
	count counters
}

// PayloadOf is a new handle's access to the payload of seg, which must stay
// open for as long as it is used.
func PayloadOf(seg *shm.Segment) *Payload {
	p := &Payload{seg: seg, hot: seg.Hot, slot: -1}
	for i := range seg.Writers {
		for c, cell := range seg.Writers[i].Cells {
			p.cells[2*i+c] = shm.CellOf(cell)
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
		p.slot, p.ready = -1, 0
	}
	p.done = true
	if aside := p.aside.Load(); aside != nil {
		return aside.Close()
	}
	return nil
}

// besideLent is the handle for writes of this process while a WithLease holds
// p: inside its function, or from another goroutine. It takes a writer slot of
// its own.
func (p *Payload) besideLent() *Payload {
	if p.aside.Load() == nil {
		p.aside.CompareAndSwap(nil, PayloadOf(p.seg))
	}
	return p.aside.Load()
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

// cellBits are the bits of the commit word that name a cell: slot and cell.
const (
	cellBits = 127 << 32
	cellBit  = 1 << 32
)

// begin prepares a write by owner, under the lock: p.next names the cell that
// is to be filled, of the two of our slot the one that is not committed. False
// if owner may not write; p.why is the reason.
//
// The commit word is not loaded for it: a load right after a locked operation
// on the same word waits for that. What this handle saw last is good enough.
// Which of our cells is committed, if one is, changes by our own publishing
// alone, and publish notices the rest.
func (p *Payload) begin(owner uint64) bool {
	return p.ready == owner && p.hot.Owner.Load() == owner || p.look(owner)
}

// cell is the one to fill.
func (p *Payload) cell() shm.Cell { return p.cells[p.next&cellBits>>32] }

// publish makes the cell that was filled the committed one. False if the
// commit word has passed to another term.
func (p *Payload) publish() bool {
	return p.hot.Commit.CompareAndSwap(p.seen, p.next) && p.published(p.next) || p.republish()
}

// failed counts a write that failed, and is the reason.
func (p *Payload) failed() error {
	p.count.write.miss(p.why)
	return p.why
}

// look loads the commit word, and takes a writer slot if there is none yet and
// owner may write.
func (p *Payload) look(owner uint64) bool {
	p.ready, p.why = 0, ErrNotOwner
	pause(pointLookCommit)
	if !sameTerm(p.hot.Commit.Load(), owner) {
		return false
	}
	pause(pointLookOwner)
	if p.hot.Owner.Load() != owner {
		return false
	}
	if p.slot < 0 {
		if p.done {
			p.why = ErrClosed
			return false
		}
		pause(pointLookSlot)
		if p.slot, p.phase, p.why = takeSlot(p.seg); p.why != nil {
			return false
		}
		p.why = ErrNotOwner
		p.next = uint64(p.slot) << 33
	}
	// Loaded (again) after the slot was taken: what its last holder committed
	// must be seen before a cell of it is chosen.
	pause(pointLookAgain)
	c := p.hot.Commit.Load()
	if !sameTerm(c, owner) {
		return false
	}
	at := p.next & cellBits
	if c&cellBits == at {
		at ^= cellBit
	}
	p.ready, p.seen, p.next = owner, c, after(c, at)
	return true
}

// after is the commit word that follows c with the cell at.
func after(c, at uint64) uint64 { return c>>39<<39 | at | uint64(uint32(c)+1) }

// published is for after a publish, of the word c: the other cell is next.
func (p *Payload) published(c uint64) bool {
	p.seen, p.next = c, after(c, c&cellBits^cellBit)
	return true
}

// republish goes on when the commit word is not the one that was seen. Another
// handle of the same owner may have published: then only its sequence number
// and its cell are others, and ours still is nobody else's.
func (p *Payload) republish() bool {
	for {
		pause(pointPublishLoad)
		c := p.hot.Commit.Load()
		if !sameTerm(c, p.ready) {
			p.ready, p.why = 0, ErrNotOwner
			return false
		}
		pause(pointPublishAgain)
		if next := after(c, p.next&cellBits); p.hot.Commit.CompareAndSwap(c, next) {
			return p.published(next)
		}
	}
}

// sameTerm reports whether commit word c belongs to the term of an owner word.
func sameTerm(c, owner uint64) bool { return (c>>39^owner)&(1<<25-1) == 0 }

// termOf is the whole term of commit word c, whose 25 bits are those of a term
// that an owner word had before it was owner.
func termOf(c, owner uint64) uint64 {
	_, term := shm.UnpackOwner(owner)
	return term - (term-c>>39)&(1<<25-1)
}
