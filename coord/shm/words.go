package shm

// The packing of the words of the protocol. All are pure functions.

const (
	// MaxPID is the largest pid an owner word holds: 22 bits, PID_MAX_LIMIT
	// of include/linux/threads.h.
	MaxPID = 1<<22 - 1
	// MaxTerm is the last term: 42 bits.
	MaxTerm = 1<<42 - 1

	termBits = 42
)

// PackOwner joins (pid, term) for the owner word and the active word.
func PackOwner(pid uint32, term uint64) uint64 { return uint64(pid)<<termBits | term&MaxTerm }

// UnpackOwner takes an owner word or an active word apart.
func UnpackOwner(w uint64) (pid uint32, term uint64) { return uint32(w >> termBits), w & MaxTerm }

const sealBit = 1 << 31

// Heartbeat is a heartbeat word taken apart.
type Heartbeat struct {
	Tag    uint32 // low 32 bits of the term that it belongs to; compared for equality only
	Sealed bool   // its owner can beat no more
	Epoch  uint32 // low 31 bits of the epoch of the last beat
}

// PackHeartbeat joins a heartbeat word from a term and an epoch.
func PackHeartbeat(tag uint32, epoch uint64, sealed bool) uint64 {
	w := uint64(tag)<<32 | epoch&(sealBit-1)
	if sealed {
		w |= sealBit
	}
	return w
}

// UnpackHeartbeat takes a heartbeat word apart.
func UnpackHeartbeat(w uint64) Heartbeat {
	return Heartbeat{Tag: uint32(w >> 32), Sealed: w&sealBit != 0, Epoch: uint32(w) & (sealBit - 1)}
}

// Behind is how many epochs a heartbeat made in epoch beat is behind now, as
// the signed difference of their low 31 bits: negative when it is newer, and
// right while fewer than 2^30 epochs lie between.
func Behind(now uint64, beat uint32) int64 {
	d := int32((uint32(now)&(sealBit-1))-beat) << 1 >> 1
	return int64(d)
}

// Commit is the payload's commit word taken apart.
type Commit struct {
	Term uint32 // low 25 bits of the term that may publish; compared for equality only
	Slot uint32 // writer slot of the committed value, 6 bits
	Cell uint32 // 0 or 1
	Seq  uint32 // runs on over terms
}

const commitTermMask = 1<<25 - 1

// CommitTermShift is where the term begins in a commit word; it goes up to the
// highest bit.
const CommitTermShift = 39

// CommitTerm is the part of a term that the commit word holds.
func CommitTerm(term uint64) uint32 { return uint32(term & commitTermMask) }

// Pack joins the commit word.
func (c Commit) Pack() uint64 {
	return uint64(c.Term&commitTermMask)<<CommitTermShift | uint64(c.Slot&63)<<33 | uint64(c.Cell&1)<<32 | uint64(c.Seq)
}

// UnpackCommit takes a commit word apart.
func UnpackCommit(w uint64) Commit {
	return Commit{Term: uint32(w >> CommitTermShift), Slot: uint32(w>>33) & 63, Cell: uint32(w>>32) & 1, Seq: uint32(w)}
}

// Phases of a seat and of a writer slot. The numbers are in files and
// append-only.
const (
	PhaseFree    uint8 = 0
	PhaseJoining uint8 = 1 // its identity is being written
	PhaseJoined  uint8 = 2 // its identity is whole
)

// Phase is the phase word of a seat or a writer slot, taken apart.
type Phase struct {
	Phase       uint8
	Incarnation uint32 // 24 bits; rises by one with each taking
	PID         uint32
}

// Pack joins the phase word.
func (p Phase) Pack() uint64 {
	return uint64(p.Phase)<<56 | uint64(p.Incarnation&(1<<24-1))<<32 | uint64(p.PID)
}

// UnpackPhase takes a phase word apart.
func UnpackPhase(w uint64) Phase {
	return Phase{Phase: uint8(w >> 56), Incarnation: uint32(w>>32) & (1<<24 - 1), PID: uint32(w)}
}

// Bits of a seat's status word.
const (
	StatusReady   uint64 = 1 << 0 // can take over now
	StatusWaiting uint64 = 1 << 1 // may sleep on its event word
	StatusIdle    uint64 = 1 << 2 // waits for work: no progress is no hang
	StatusRacing  uint64 = 1 << 3 // would claim now: neither leads nor is in a back-off
	StatusLast    uint64 = 1 << 4 // the supervisor's word: it failed as leader a moment ago, others go first
	StatusWatched uint64 = 1 << 5 // reports progress: while it leads, none for the limit is a hang

	// StatusUnadmitted is set by a member that joins and cleared by the
	// supervisor: until then it does not contend, however ready it is.
	StatusUnadmitted uint64 = 1 << 6
)

// Bits of a seat's ways word: by what its member's death is noticed, how it
// notices an owner's, and how its waiting and beating threads run. The numbers
// are in files and append-only.
const (
	WayRobust uint64 = 1 << 0 // its end fires its robust words, and it waits on those of an owner
	WayPidfd  uint64 = 1 << 1 // it holds a pidfd on an owner
	WayNice   uint64 = 1 << 2 // nice -20
	WayFIFO   uint64 = 1 << 3 // SCHED_FIFO
)
