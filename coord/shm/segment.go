package shm

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Segment is one mapped segment. The views are set once, when it is opened,
// and may be used by any number of goroutines until Close.
type Segment struct {
	path   string
	file   *os.File
	state  fileState // of file
	m      *Mapping
	params Params
	geo    geometry
	meta   Meta
	head   header // as it was when the segment was made or opened
	once   sync.Once

	Owner     *atomic.Uint64
	Heartbeat [2]*atomic.Uint64 // of even and of odd terms
	Epoch     *atomic.Uint64
	TickedAt  *atomic.Uint64
	Forgiven  *atomic.Uint64
	Active    *atomic.Uint64
	Commit    *atomic.Uint64
	Joins     *atomic.Uint64
	Control   ControlWords
	Seats     []SeatWords
	Writers   []WriterWords
	ring      []RingWords
	plain     []ringEntry // the same memory
	Hot       *HotWords
}

// Meta is what the header says beside the parameters.
type Meta struct {
	Boot      uint64    // hash of the creator's machine boot id
	CreatedAt time.Time // wall clock
}

// ControlWords are the supervisor's. Word is stored last.
type ControlWords struct {
	Word, Resign, Granted, Until, Fault *atomic.Uint64
}

// SeatWords are one seat of the member table.
type SeatWords struct {
	Phase, PID, Start, Boot, PIDNS, Index, JoinSeq   *atomic.Uint64
	Beat, Progress, Status, Candidate, Lag, InFlight *atomic.Uint64
	Event                                            *atomic.Uint32
	Robust, Ways                                     *atomic.Uint64
}

// RingWords are the ring's entry of one term.
type RingWords struct {
	Term, PID, Seat, Previous, Reason                   *atomic.Uint64
	DetectedAt, ClaimedAt, ActiveAt, RetiredAt, EndedAt *atomic.Uint64
	InFlight, FencedAt                                  *atomic.Uint64
	// Plain is the owner word of the latest term that has only this word of
	// the entry: see RecordPlainClaim.
	Plain *atomic.Uint64
}

// WriterWords are one writer slot with its two cells.
type WriterWords struct {
	Phase, PID, Start, Boot, PIDNS, Check *atomic.Uint64
	Cells                                 [2][]atomic.Uint64
}

// Params are the segment's constants.
func (s *Segment) Params() Params { return s.params }

// Grace, Tick and Generation are three of the Params, for hot paths.
func (s *Segment) Grace() uint64       { return s.params.Grace }
func (s *Segment) Tick() time.Duration { return s.params.Tick }
func (s *Segment) Generation() uint64  { return s.params.Generation }

// Meta says when and in which machine boot the segment was created.
func (s *Segment) Meta() Meta { return s.meta }

// Path is where the segment was created or opened.
func (s *Segment) Path() string { return s.path }

// File is the open file, for a child process to inherit. It belongs to the segment.
func (s *Segment) File() *os.File { return s.file }

// HasPayload reports whether the segment has cells.
func (s *Segment) HasPayload() bool { return s.geo.cell > 0 }

// Ring is the entry that term writes; older terms have been there before.
func (s *Segment) Ring(term uint64) *RingWords { return &s.ring[int(term)&(len(s.ring)-1)] }

// RingSize is the number of the ring's entries.
func (s *Segment) RingSize() int { return len(s.ring) }

// Check looks whether the file under the mapping still is what it was: not
// truncated, not unlinked, not replaced, its header not overwritten. ErrGone
// otherwise. Two system calls; meant for now and then, CheckSize for each tick.
func (s *Segment) Check() error {
	if err := s.CheckSize(); err != nil {
		return err
	}
	// Read, not looked at in the mapping: a file that is cut in this moment is
	// an error then and no fault.
	var now header
	if _, err := s.file.ReadAt(now[:], 0); err != nil {
		return fmt.Errorf("check segment %s: %w", s.path, err)
	}
	if now != s.head {
		return fmt.Errorf("segment %s was overwritten, its header is not what it was: %w", s.path, ErrGone)
	}
	return nil
}

// CheckSize is the part of Check that a touch of the mapping depends on, at
// half the price: the file is still there, and as long as it was.
func (s *Segment) CheckSize() error {
	size, names, err := s.state.look()
	if err != nil {
		return fmt.Errorf("check segment %s: %w", s.path, err)
	}
	if size != int64(s.m.Len()) {
		return fmt.Errorf("segment %s has %d bytes and had %d: %w", s.path, size, s.m.Len(), ErrGone)
	}
	if names == 0 {
		return fmt.Errorf("segment %s was removed: %w", s.path, ErrGone)
	}
	return nil
}

// stat is what fileState looks for, by way of the os package.
func stat(f *os.File) (size int64, names uint64, err error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	return fi.Size(), links(fi), nil
}

// Flush writes the segment to its file system and waits; FlushAsync does not
// wait. Neither is needed for other processes to see the words.
func (s *Segment) Flush() error      { return s.m.sync(true) }
func (s *Segment) FlushAsync() error { return s.m.sync(false) }

// Close unmaps the segment. No view of it may be used afterwards, by any
// goroutine. A second Close does nothing.
func (s *Segment) Close() error {
	var err error
	s.once.Do(func() {
		err = s.m.unmap()
		if cerr := s.file.Close(); err == nil {
			err = cerr
		}
	})
	return err
}

// bind sets the views; the header has been validated against the file's size.
func (s *Segment) bind() error {
	if s.geo.total() != s.m.Len() {
		return fmt.Errorf("%d bytes where the header asks for %d: %w", s.m.Len(), s.geo.total(), ErrSize)
	}
	u := func(off int) *atomic.Uint64 { return uint64At(s.m.mem, off) }
	s.Owner, s.Active, s.Commit, s.Joins = u(offOwner), u(offActive), u(offCommit), u(offJoin)
	s.Heartbeat = [2]*atomic.Uint64{u(offH0), u(offH1)}
	s.Epoch, s.TickedAt, s.Forgiven = u(offEpoch), u(offTickedAt), u(offForgiven)
	s.Control = ControlWords{Word: u(offControl), Resign: u(offResign), Granted: u(offGranted), Until: u(offUntil), Fault: u(offFault)}
	s.Seats = make([]SeatWords, s.geo.seats)
	for i := range s.Seats {
		o := s.geo.seatAt(i)
		s.Seats[i] = SeatWords{
			Phase: u(o), PID: u(o + 8), Start: u(o + 16), Boot: u(o + 24), PIDNS: u(o + 32), Index: u(o + 40), JoinSeq: u(o + 48),
			Beat: u(o + 128), Progress: u(o + 136), Status: u(o + 144), Candidate: u(o + 152), Lag: u(o + 160), InFlight: u(o + 168),
			Event: uint32At(s.m.mem, o+256), Robust: u(o + 384), Ways: u(o + 392),
		}
	}
	s.Hot, s.plain = hotAt(s.m.mem), ringIn(s.m.mem, s.geo.ringAt(0), s.geo.ring)
	s.ring = make([]RingWords, s.geo.ring)
	for i := range s.ring {
		o := s.geo.ringAt(i)
		s.ring[i] = RingWords{
			Term: u(o), PID: u(o + 8), Seat: u(o + 16), Previous: u(o + 24), Reason: u(o + 32),
			DetectedAt: u(o + 40), ClaimedAt: u(o + 48), ActiveAt: u(o + 56), RetiredAt: u(o + 64), EndedAt: u(o + 72),
			InFlight: u(o + 80), FencedAt: u(o + 88), Plain: u(o + offRingClaim),
		}
	}
	s.Writers = make([]WriterWords, s.geo.writers)
	for i := range s.Writers {
		o := s.geo.writerAt(i)
		s.Writers[i] = WriterWords{Phase: u(o), PID: u(o + 8), Start: u(o + 16), Boot: u(o + 24), PIDNS: u(o + 32), Check: u(o + 40)}
		for c := range s.Writers[i].Cells {
			s.Writers[i].Cells[c] = wordsAt(s.m.mem, s.geo.cellAt(i, c), s.geo.cell/8)
		}
	}
	return nil
}
