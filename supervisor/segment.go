package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standbyd/standbyd/coord/election"
	"github.com/standbyd/standbyd/coord/heartbeat"
	"github.com/standbyd/standbyd/coord/role"
	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/proc"
)

// segmentUse is the role's segment as the supervisor uses it. Everything that
// reads or writes the mapping runs inside touch.
type segmentUse struct {
	seg      *shm.Segment
	election *election.Election
	table    *heartbeat.Table
	seat     *heartbeat.Seat
	broken   error // why it may not be touched any more
	checked  int64 // mono ns at which the file was looked at last
}

// checkEvery is how often the file is looked at while nothing happens.
const checkEvery = time.Second

func (u *segmentUse) generation() uint64 { return u.seg.Params().Generation }

// use takes the supervisor's seat in an open segment. On error it is closed.
func use(seg *shm.Segment) (*segmentUse, error) {
	u := &segmentUse{seg: seg, election: election.Attach(seg), table: heartbeat.NewTable(seg)}
	self, err := proc.Self()
	if err == nil {
		u.seat, err = u.table.Join(self, heartbeat.JoinOptions{Index: -1, Supervisor: true})
	}
	if err != nil {
		seg.Close()
		return nil, err
	}
	return u, nil
}

// close gives the seat back, unless the mapping is not to be trusted.
func (u *segmentUse) close() {
	u.touch(u.seat.Leave)
	u.seg.Close()
}

var errFault = errors.New("a fault in the mapping: the file under it was cut")

// touch runs f, which may use the mapping. A fault (somebody truncated the
// file) is an error instead of the end of the process; it needs watchFaults
// on the calling goroutine.
func (u *segmentUse) touch(f func()) (err error) {
	if u.broken != nil {
		return u.broken
	}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if fault, ok := p.(interface{ Addr() uintptr }); ok {
			u.broken = fmt.Errorf("segment %s: %w (at %#x)", u.seg.Path(), errFault, fault.Addr())
			err = u.broken
			return
		}
		panic(p)
	}()
	f()
	return nil
}

// watchFaults makes faults of this goroutine panics, until the function that
// it returns is called.
func (r *roleLoop) watchFaults() func() {
	before := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(before) }
}

// touch is segmentUse.touch with a lost segment as an input.
func (r *roleLoop) touch(f func(*segmentUse)) error {
	u := r.seg
	if u == nil {
		return errors.New("there is no segment")
	}
	known := u.broken != nil
	err := u.touch(func() { f(u) })
	if err != nil && !known {
		r.next(inLost{err})
	}
	return err
}

func (r *roleLoop) tick() {
	if r.ticked = false; r.seg != nil {
		r.touch(func(u *segmentUse) {
			if r.ticked = u.election.Advance(r.awake); r.ticked {
				u.table.WakeHeirs(u.election.StaleFor(), u.election.Epoch(), u.seg.Grace())
			}
		})
	}
	r.take(inLook{})
	if r.upkeepDue() {
		r.mend()
	}
}

// look reads the words; nil if there is nothing to be seen.
func (r *roleLoop) look() input {
	u := r.seg
	if u == nil || u.broken != nil {
		return nil
	}
	// Whoever overwrites the file in place leaves words that nobody can trust.
	// Where nothing happens, a look at the file now and then is enough.
	if !r.settled || r.awake-u.checked >= int64(checkEvery) {
		u.checked = r.awake
		if err := u.seg.Check(); err != nil {
			u.broken = err
			return inLost{err}
		}
	}
	in := inSeen{}
	err := u.touch(func() {
		in.owner.pid, in.owner.term = u.election.Owner()
		in.active.pid, in.active.term = u.election.Active()
		in.epoch = u.election.Epoch()
		r.members = u.table.AppendMembers(r.members[:0])
		in.seats = make([]seatView, 0, len(r.members))
		for i := range r.members {
			m := &r.members[i]
			if m.Seat == heartbeat.SupervisorSeat {
				continue
			}
			in.seats = append(in.seats, seatView{seat: m.Seat, pid: uint32(m.Identity.PID), ready: m.Ready && !m.Unadmitted, racing: m.Racing, waits: m.Unadmitted,
				bars: m.Candidate.NoFailover, last: m.Last, watched: m.Watched, priority: m.Candidate.Priority, lag: m.Candidate.Lag,
				joined: m.JoinSeq, beat: m.BeatEpoch, ways: m.Ways})
		}
		if in.owner != r.seen.owner || in.active != r.seen.active || r.st.pending != nil || r.st.drill != nil || r.st.change != nil || r.st.ring == nil {
			in.ring = ringOf(u.election)
		}
	})
	if err != nil {
		return inLost{err}
	}
	r.seen = in
	return in
}

func ringOf(e *election.Election) []ringView {
	entries := e.Ring()
	ring := make([]ringView, len(entries))
	for i, e := range entries {
		ring[i] = ringView{term: e.Term, pid: e.PID, reason: e.Reason, ended: e.EndedAt, detected: e.DetectedAt,
			claimed: e.ClaimedAt, fenced: e.FencedAt, activated: e.ActiveAt, retired: e.RetiredAt}
	}
	return ring
}

var controlStates = map[controlMode]election.ControlState{
	controlOpen: election.ControlOpen, controlPaused: election.ControlPaused,
	controlHeld: election.ControlHeld, controlClosed: election.ControlClosed,
}

func (r *roleLoop) setControl(w controlWord) {
	if r.seg == nil || r.seg.broken != nil {
		return
	}
	r.touch(func(u *segmentUse) {
		u.election.SetControl(election.Control{State: controlStates[w.mode], Gate: w.gate, ByHand: w.byHand, Planned: w.planned,
			Nominee: w.nominee, ResignTerm: w.resign, GrantedTerm: w.granted, Until: w.until})
	})
}

func (r *roleLoop) params(generation uint64) shm.Params {
	c := &r.config
	p := shm.DefaultParams()
	p.Generation, p.Grace, p.Tick = generation, uint64(c.Grace), c.Tick
	p.ProgressLimit, p.DrainLimit, p.FenceLimit = c.ProgressTimeout, c.DrainTimeout, c.FenceTimeout
	p.Fence = map[Fence]uint8{FenceToken: shm.FenceToken, FenceProcess: shm.FenceProcess, FenceTree: shm.FenceTree}[c.Fence]
	p.Proof = map[Proof]uint8{ProofGone: shm.ProofGone, ProofExiting: shm.ProofExiting}[c.Proof]
	p.Preempt = map[Preempt]uint8{PreemptSticky: shm.PreemptSticky, PreemptLowestPID: shm.PreemptLowestPID, PreemptPriority: shm.PreemptPriority}[c.Preempt]
	p.Scheduling = map[Scheduling]uint8{SchedulingNormal: shm.SchedulingNormal, SchedulingNice: shm.SchedulingNice, SchedulingFIFO: shm.SchedulingFIFO}[c.Scheduling]
	p.Cell, p.PayloadType = c.Payload, -1
	p.UID, p.GID = r.user.owner()
	return p
}

// newSegment makes the segment of the next generation and takes the seat in
// it. The generation is on disk before the segment is published.
func (r *roleLoop) newSegment() error {
	generation, err := r.sup.nextGeneration(r.config.Name, r.lastGeneration())
	if err != nil {
		return err
	}
	seg, err := shm.Create(r.paths.segment(generation), r.params(generation), nil)
	if err != nil {
		return atRuntime{err}
	}
	u, err := use(seg)
	if err != nil {
		return err
	}
	r.seg, r.seen = u, inSeen{}
	r.removeOldSegments(seg.Path())
	return nil
}

// lastGeneration is the highest one of which the runtime folder knows: the
// state folder may have been lost or replaced by an older copy.
func (r *roleLoop) lastGeneration() uint64 {
	last := r.st.generation
	for _, path := range r.oldSegments() {
		if g, err := strconv.ParseUint(strings.TrimPrefix(filepath.Ext(path), "."), 10, 64); err == nil && g <= role.MaxGeneration {
			last = max(last, g)
		}
	}
	return last
}

// oldSegments are the files in the role's folder that have a segment's name.
func (r *roleLoop) oldSegments() []string {
	old, _ := filepath.Glob(filepath.Join(r.paths.dir, "segment.*"))
	return slices.DeleteFunc(old, func(path string) bool {
		fi, err := os.Lstat(path)
		return err != nil || !fi.Mode().IsRegular()
	})
}

// removeOldSegments removes every segment of the role but one.
func (r *roleLoop) removeOldSegments(keep string) {
	for _, path := range r.oldSegments() {
		if path != keep {
			os.Remove(path)
		}
	}
}

// renewSegment replaces a lost segment, and what else may be gone with it
// from the runtime folder.
func (r *roleLoop) renewSegment() error {
	if r.seg != nil {
		r.seg.close()
		r.seg = nil
	}
	if err := r.furnish(); err != nil {
		return err
	}
	return r.newSegment()
}
