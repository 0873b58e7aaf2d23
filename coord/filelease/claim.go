package filelease

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/standbyd/standbyd/internal/proc"
)

// Claimant says who wants a lease. All fields may be empty.
type Claimant struct {
	// Run names one run of a process; empty means a random name that this
	// Store made. It must not be the name of something that lives longer, as
	// the machine's boot or a service. Block names a holder within the run:
	// two blocks exclude each other.
	Run, Block string
	// SessionHint, Label and Version are for the people who read who holds it.
	SessionHint string
	Label       string
	Version     string
	// Pinned: on the kernel where the holder runs, the lease is never taken by
	// time, however long it was not renewed, but only after the holder's death.
	// For what must not run beside its successor, even if it was stopped. On
	// another machine that shares the folder, time still decides.
	Pinned bool
}

// Claim grants the lease of key if nobody holds it, its time is over, or its
// holder is provably dead; else the error is a *HeldError that says who holds
// it. What the same run and block of this process holds is renewed and granted
// again, under the same epoch. Claim waits for the critical section until ctx
// ends, never for the holder.
func (s *Store) Claim(ctx context.Context, key string, c Claimant) (*Lease, error) {
	var l *Lease
	err := s.critical(ctx, key, func(in section) (err error) {
		l, err = s.claim(in, key, c)
		return err
	})
	return l, err
}

// TryClaim is Claim without any waiting: it is ErrBusy if another process is in
// the critical section of key at the moment.
func (s *Store) TryClaim(ctx context.Context, key string, c Claimant) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	var l *Lease
	err := s.tryCritical(key, func(in section) (err error) {
		l, err = s.claim(in, key, c)
		return err
	})
	return l, err
}

func (s *Store) claim(in section, key string, c Claimant) (*Lease, error) {
	if c.Run == "" {
		c.Run = s.run
	}
	f, err := s.find(key)
	if err != nil {
		return nil, err
	}
	if f.r != nil && s.ours(f.r, c) {
		return s.refresh(in, f.r, c)
	}
	v, err := s.judge(key, f, true)
	if err != nil {
		return nil, err
	}
	if v.held != nil {
		if f.r != nil && f.r.Run == c.Run && v.held.Why == "" && !s.ownProcess(f.r) {
			v.held.Why = "it has the claimant's run name, but is another process"
		}
		return nil, v.held
	}
	return s.grant(in, key, c, f)
}

// ours: the same run and block, of this process. What the record lacks matches.
func (s *Store) ours(r *record, c Claimant) bool {
	return r.Run == c.Run && (r.Block == nil || *r.Block == c.Block) && s.ownProcess(r)
}

func (s *Store) ownProcess(r *record) bool {
	if r.Boot != 0 && s.boot != 0 && uint64(r.Boot) != s.boot || r.Boot == 0 && s.boot == 0 && r.Host != "" && r.Host != s.host {
		return false
	}
	if r.PIDNS != 0 && r.PIDNS != s.self.PIDNS || r.PID != 0 && r.PID != s.self.PID {
		return false
	}
	start := s.identityOf(r, r.PID, r.Start).Start
	return start == 0 || start == s.self.Start
}

// refresh renews what the claimant holds already.
func (s *Store) refresh(in section, r *record, c Claimant) (*Lease, error) {
	if r.Claim == "" {
		r.Claim = randomID()
	}
	r.Block = &c.Block // and pinned it stays, or not, as it was granted
	for _, f := range []struct{ to, from *string }{{&r.SessionHint, &c.SessionHint}, {&r.Label, &c.Label}, {&r.Program, &c.Version}} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	s.identify(r)
	own := liveOf(r.Claim)
	if own != nil {
		if same, err := leadsTo(s.file(r.Key, liveSuffix), own); err != nil || !same {
			// Deleted or replaced: what we have locked proves nothing any more.
			dropLive(r.Claim)
			own = nil
		}
	}
	if own == nil {
		var err error
		if own, err = s.takeLive(r.Key, r.Pinned); err != nil {
			return nil, err
		}
	}
	r.Live = 0
	if own != nil {
		r.Live = fileNumber(own)
	}
	if err := in.check(); err != nil {
		return nil, unlessHeld(r.Claim, own, err)
	}
	renewed, err := s.write(r)
	if err != nil {
		return nil, unlessHeld(r.Claim, own, err)
	}
	if l := s.own(r.Key); l != nil && l.claim == r.Claim && l.renewedAt(renewed) {
		improve(r.Claim, own)
		return l, nil
	}
	return s.adopt(r, own, renewed), nil
}

// unlessHeld unlocks what was locked for a claim that failed, and returns err.
func unlessHeld(claim string, file *os.File, err error) error {
	if file != nil && liveOf(claim) != file {
		unlock(file)
	}
	return err
}

// grant puts the claimant on record. The counter comes first: an epoch that
// nobody got harms nobody.
func (s *Store) grant(in section, key string, c Claimant, f found) (*Lease, error) {
	if old := s.own(key); old != nil {
		old.lose(fmt.Errorf("lease %q: %w: another holder has it", key, ErrLost))
		old.letGo() // its lock would be in our way
	}
	file, err := s.takeLive(key, c.Pinned)
	if err != nil {
		return nil, err
	}
	step("took live")
	l, err := s.put(in, key, c, f, file)
	if err != nil {
		unlock(file)
		return nil, err
	}
	return l, nil
}

func (s *Store) put(in section, key string, c Claimant, f found, file *os.File) (*Lease, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	epoch, err := s.nextEpoch(key, f.epoch)
	if err != nil {
		return nil, err
	}
	if f.r == nil && f.info != nil {
		if err := os.Rename(s.file(key, leaseSuffix), s.file(key, badSuffix)); err != nil {
			return nil, err
		}
		step("kept bad")
	}
	r := &record{
		Version: recordVersion, Key: key, Epoch: epoch, Claim: randomID(), Run: c.Run, Block: &c.Block, Pinned: c.Pinned,
		SessionHint: c.SessionHint, Label: c.Label, Program: c.Version, Since: s.clock.Now().UTC().Truncate(time.Second),
	}
	s.identify(r)
	if file != nil {
		r.Live = fileNumber(file)
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	renewed, err := s.write(r)
	if err != nil {
		return nil, err
	}
	os.Remove(s.file(key, seenSuffix)) // about a record that is gone
	return s.adopt(r, file, renewed), nil
}

// identify says on record who this process is.
func (s *Store) identify(r *record) {
	r.Host, r.Machine, r.Boot, r.PIDNS, r.TimeNS = s.host, s.machine, id(s.boot), s.self.PIDNS, s.timens
	r.PID, r.Start = s.self.PID, s.self.Start
}

// adopt makes the Lease of a record that was written.
func (s *Store) adopt(r *record, file *os.File, renewed time.Duration) *Lease {
	l := &Lease{
		store: s, key: r.Key, epoch: r.Epoch, claim: r.Claim, pinned: r.Pinned,
		run: r.Run, block: r.block(), renewed: renewed, done: make(chan struct{}),
	}
	hold(l.claim, file)
	s.mu.Lock()
	s.leases[l.key] = l
	s.mu.Unlock()
	return l
}

func (s *Store) own(key string) *Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[key]
}

// NameCommand puts on record that a process group acts under the lease: pid is
// its leader, and a child of the caller that was not waited for. From then on
// the holder counts as dead only when that group is gone too. Call it before
// the command does anything.
func (s *Store) NameCommand(ctx context.Context, l *Lease, pid int) error {
	who, err := proc.Of(pid)
	if err != nil {
		return err
	}
	return s.update(ctx, l, func(r *record) { r.Command = &command{PID: who.PID, Start: who.Start} })
}
