package filelease

import (
	"fmt"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// State is what is known about a key.
type State string

const (
	StateFree    State = "free"    // nobody holds the lease
	StateHeld    State = "held"    // somebody does, or nothing proves the opposite
	StateExpired State = "expired" // its holder has not renewed it for its TTL: the next claim gets it
	StateDead    State = "dead"    // its holder is provably dead: the next claim gets it
)

// verdict is what follows from a record, KEY.live, the process table and time.
type verdict struct {
	state State
	held  *HeldError // set if held
}

// watched is a process whose end may change a verdict.
type watched struct{ id proc.Identity }

// judge decides who holds the lease. Inside the critical section, so that two
// claimants cannot find the same holder dead. remember: the caller will claim,
// so what it watches is worth remembering.
func (s *Store) judge(key string, f found, remember bool) (verdict, error) {
	p, err := s.probe(key)
	if err != nil {
		return verdict{}, err
	}
	switch {
	case f.info == nil && (!p.locked || p.word == wordSuperseded):
		return verdict{state: StateFree}, nil
	case f.r == nil:
		return s.judgeDamaged(key, f, p, remember), nil
	}
	r := f.r
	held := &HeldError{Key: key, Holder: r.holder()}
	here := s.sameKernel(r)
	proof := s.silent(r, p) || s.dead(r)
	switch {
	case proof && s.commandGone(r):
		return verdict{state: StateDead}, nil
	case proof && here:
		held.Why = s.whyCommand(r)
		held.again = commandRetry
		held.watch = s.commandOf(r)
		return verdict{StateHeld, held}, nil
	case r.Pinned && here:
		held.watch = s.processesOf(r)
		if !p.locked {
			held.Why = s.whyUnknown(r, p)
		}
		return verdict{StateHeld, held}, nil
	}
	left, certain := s.timeLeft(r)
	if !certain {
		left = s.watch.left(s, key, f, p, remember)
		held.Why = s.whyUnknown(r, p)
	}
	if left <= 0 {
		return verdict{state: StateExpired}, nil
	}
	held.Holder.ExpiresIn, held.again = left, left
	held.watch = s.processesOf(r)
	return verdict{StateHeld, held}, nil
}

// judgeDamaged: an unreadable record, or none while somebody has KEY.live
// locked, proves nothing. Time decides, but not about a pinned holder.
func (s *Store) judgeDamaged(key string, f found, p probe, remember bool) verdict {
	path := s.file(key, leaseSuffix)
	held := &HeldError{Key: key, cause: ErrUnreadable}
	if f.info == nil {
		held.Why = fmt.Sprintf("its record is missing, but %s is locked", s.file(key, liveSuffix))
	} else {
		held.Why = fmt.Sprintf("%s is unreadable, so somebody may hold the lease: %v; move it away if you are sure that nobody does", path, f.damaged)
	}
	left := s.watch.left(s, key, f, p, remember)
	if p.locked && p.word == wordPinned {
		return verdict{StateHeld, held}
	}
	if left <= 0 {
		return verdict{state: StateExpired}
	}
	held.Holder.ExpiresIn, held.again = left, left
	return verdict{StateHeld, held}
}

// commandRetry is how soon to look again at a command that is ending.
const commandRetry = 250 * time.Millisecond

// sameKernel: the holder and we have one process table and one table of locks,
// as far as it is known.
func (s *Store) sameKernel(r *record) bool {
	if r.Boot != 0 || s.boot != 0 {
		return uint64(r.Boot) == s.boot
	}
	return !s.network && r.Host != "" && r.Host == s.host // a system that names no boots
}

// silent: the holder locked this very file on this kernel, and its lock is gone.
func (s *Store) silent(r *record, p probe) bool {
	return s.sameKernel(r) && p.exists && !p.locked && r.Live != 0 && r.Live == p.number
}

// dead: its process is provably gone, by what it recorded.
func (s *Store) dead(r *record) bool {
	if s.bootedSince(r) {
		return true
	}
	if !s.sameKernel(r) || r.PID <= 0 || r.PIDNS != s.self.PIDNS || r.Host != "" && r.Host != s.host {
		return false
	}
	return proc.Judge(s.identityOf(r, r.PID, r.Start)) == proc.Gone
}

// bootedSince: this machine has booted since. Only a local folder belongs to
// one machine for sure; on a shared one, machines may have been cloned with
// their identity.
func (s *Store) bootedSince(r *record) bool {
	return r.Boot != 0 && s.boot != 0 && uint64(r.Boot) != s.boot &&
		!s.network && r.Machine != "" && r.Machine == s.machine
}

// commandGone: no process of the command's group is left. True if the record
// names none.
func (s *Store) commandGone(r *record) bool {
	c := r.Command
	if c == nil || s.bootedSince(r) {
		return true
	}
	if !s.sameKernel(r) || c.PID <= 0 || r.PIDNS != s.self.PIDNS {
		return false
	}
	return proc.Judge(s.identityOf(r, c.PID, c.Start)) == proc.Gone && proc.GroupGone(c.PID)
}

// timeLeft is what is left of the TTL; it is certain only by the clock that the
// record was stamped with.
func (s *Store) timeLeft(r *record) (left time.Duration, certain bool) {
	stamp := time.Duration(r.Boottime)
	now := s.clock.Boottime()
	if r.Boot == 0 || uint64(r.Boot) != s.boot || r.TimeNS != s.timens || stamp <= 0 || stamp > now || r.TTL <= 0 {
		return 0, false
	}
	return time.Duration(r.TTL) - (now - stamp), true
}

func (s *Store) whyUnknown(r *record, p probe) string {
	switch {
	case !s.sameKernel(r):
		return "it is on another machine, or of an earlier boot, and cannot be seen from here: it is watched until its time is over"
	case r.Live != 0 && p.number != r.Live:
		return "its lock file was deleted or replaced, and nothing else proves its death"
	case r.TimeNS != s.timens:
		return "its clock is that of another time namespace: it is watched until its time is over"
	}
	return ""
}

func (s *Store) whyCommand(r *record) string {
	if r.PIDNS != s.self.PIDNS {
		return fmt.Sprintf("it is dead, but its command, pid %d in another pid namespace, cannot be seen from here", r.Command.PID)
	}
	return fmt.Sprintf("it is dead, but its command, process group %d, lives", r.Command.PID)
}

// processesOf are those of a record that can be seen from here.
func (s *Store) processesOf(r *record) []watched {
	if !s.sameKernel(r) || r.PIDNS != s.self.PIDNS || r.PID <= 0 {
		return nil
	}
	return append(s.commandOf(r), watched{s.identityOf(r, r.PID, r.Start)})
}

func (s *Store) commandOf(r *record) []watched {
	if r.Command == nil || !s.sameKernel(r) || r.PIDNS != s.self.PIDNS || r.Command.PID <= 0 {
		return nil
	}
	return []watched{{s.identityOf(r, r.Command.PID, r.Command.Start)}}
}
