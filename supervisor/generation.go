package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/standbyd/standbyd/coord/filelease"
	"github.com/standbyd/standbyd/coord/role"
)

// catchUp is how far behind the counter of generations may be: beyond that the
// state folder is not of this machine.
const catchUp = 10_000

// generationKey is the counter of a role's generations in the state folder.
func generationKey(roleName string) string { return "role." + roleName }

// generationOf names that counter in sentences.
func generationOf(roleName string) string { return "the generation of role " + roleName }

// nextGeneration is persisted before it is returned, and above last and every
// one that this process has seen in use, whatever has become of the state
// folder. Tokens never fall, because no generation is handed out twice. last is
// the one that the runtime folder tells of, 0 if it tells of none.
func (s *Supervisor) nextGeneration(roleName string, last uint64) (uint64, error) {
	key, keep := generationKey(roleName), s.keep.Load()
	fail := func(err error) (uint64, error) {
		if told := s.toldGeneration(roleName); told > 0 && errors.Is(err, filelease.ErrUnreadable) {
			err = fmt.Errorf("%w; the history knows of generations up to %d", err, told)
		}
		return 0, fmt.Errorf("take the next generation of role %s: %w", roleName, err)
	}
	if last > 0 {
		if err := keep.found(roleName, last); err != nil {
			return fail(err)
		}
	}
	if used := keep.last(roleName); used > 0 {
		lost, err := keep.mendCounter(context.Background(), key, generationOf(roleName), used)
		if err != nil {
			return fail(err)
		}
		if lost != "" {
			keep.made("state", madeAgain(s.config.StateDir, []string{lost})+tokensGoOn)
		}
	}
	g, err := s.store.NextEpoch(context.Background(), key)
	if err != nil {
		return fail(err)
	}
	if g > role.MaxGeneration {
		return fail(fmt.Errorf("%d is the last one", role.MaxGeneration))
	}
	keep.used(roleName, g)
	return g, nil
}

// toldGeneration is the highest one that the history has of a role, 0 for none.
func (s *Supervisor) toldGeneration(roleName string) (highest uint64) {
	records, _ := s.history.read(roleName)
	for _, r := range records {
		highest = max(highest, r.Token.Generation())
	}
	return highest
}

// doubt is a generation that was found in use, and the highest one that the
// state folder told of then.
type doubt struct{ generation, told uint64 }

// used notes that a generation of a role was handed out.
func (u *upkeep) used(roleName string, generation uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.generations[roleName] = max(u.generations[roleName], generation)
}

// remember notes the counters of all roles that ever ran here: one that is not
// in the config now may come back.
func (u *upkeep) remember() error {
	keys, err := u.sup.store.Keys()
	if err != nil {
		return err
	}
	for _, key := range keys {
		name, ok := strings.CutPrefix(key, generationKey(""))
		if !ok {
			continue
		}
		// A damaged one is told when it is needed.
		if last, err := u.sup.store.LastEpoch(key); err == nil {
			u.used(name, last)
		}
	}
	return nil
}

// found is used for a generation that we find in use. The counter may be
// damaged, lost or lowered: then the history tells how far the role was at
// least. A generation that is far above both is not of this folder, or was
// written by the role's user, and must not spoil the counter: an error, which
// is looked into again at each look at the folder.
func (u *upkeep) found(roleName string, generation uint64) error {
	last, err := u.sup.store.LastEpoch(generationKey(roleName))
	last = max(last, u.last(roleName))
	if err == nil && generation <= last+catchUp {
		u.used(roleName, generation)
		return nil
	}
	told := max(last, u.sup.toldGeneration(roleName))
	if generation <= told+catchUp {
		u.used(roleName, max(generation, told))
		return nil
	}
	d := doubt{generation, told}
	u.mu.Lock()
	u.doubts[roleName] = d
	u.mu.Unlock()
	return u.doubtful(roleName, d)
}

func (u *upkeep) doubtful(roleName string, d doubt) error {
	return fmt.Errorf("role %s was found in generation %d, and the state folder %s knows of none above %d: is it the right one? If so, write %d and a newline into leases/%s.epoch there, else tokens may fall after the next start",
		roleName, d.generation, u.sup.config.StateDir, d.told, d.generation, generationKey(roleName))
}

// doubted looks whether the counters have been corrected meanwhile.
func (u *upkeep) doubted() (errs []error) {
	u.mu.Lock()
	doubts := maps.Clone(u.doubts)
	u.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(doubts)) {
		d := doubts[name]
		last, err := u.sup.store.LastEpoch(generationKey(name))
		if err != nil || d.generation > last+catchUp {
			errs = append(errs, u.doubtful(name, d))
			continue
		}
		u.used(name, d.generation)
		u.mu.Lock()
		delete(u.doubts, name)
		u.mu.Unlock()
	}
	return errs
}

// last is the highest generation of a role that is known, 0 for none.
func (u *upkeep) last(roleName string) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.generations[roleName]
}
