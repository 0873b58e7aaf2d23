//go:build unix

package launch

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/launch/stage"
)

// Settings are what the stage sets of a process besides its folder, umask and
// user. The zero value sets nothing; anything else needs Spec.Staged.
type Settings struct {
	Nice        *int // niceness, -20 to 19; nil keeps the parent's
	OOMScoreAdj *int // -1000 to 1000, Linux only; nil keeps the parent's
	NoNewPrivs  bool // exec grants nothing any more: no setuid, no file capabilities; Linux only
	Limits      []Limit
}

// Unlimited is the limit that limits nothing.
const Unlimited = ^uint64(0)

// Limit is one resource limit, in the resource's own unit.
type Limit struct {
	Name       string // one of LimitNames
	Soft, Hard uint64 // Soft is in force; the process may raise it up to Hard
}

// LimitNames are the resources that can be limited: open files, bytes of a
// core dump, bytes of address space, processes of the user, bytes locked in
// memory.
var LimitNames = []string{"nofile", "core", "as", "nproc", "memlock"}

// resources has the system's number for each of LimitNames.
var resources = map[string]int{
	"nofile": unix.RLIMIT_NOFILE, "core": unix.RLIMIT_CORE, "as": unix.RLIMIT_AS,
	"nproc": unix.RLIMIT_NPROC, "memlock": unix.RLIMIT_MEMLOCK,
}

// String is the limit as an error shows it.
func (l Limit) String() string {
	return l.Name + " " + limitText(l.Soft) + ":" + limitText(l.Hard)
}

func limitText(n uint64) string {
	if n == Unlimited {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

func (s *Settings) none() bool {
	return s.Nice == nil && s.OOMScoreAdj == nil && !s.NoNewPrivs && len(s.Limits) == 0
}

func (s *Settings) check() error {
	for _, l := range s.Limits {
		if _, ok := resources[l.Name]; !ok {
			return fmt.Errorf("there is no limit %q", l.Name)
		}
		if l.Soft > l.Hard {
			return fmt.Errorf("limit %v: the soft one is above the hard one", l)
		}
	}
	return nil
}

// LimitOf returns this process's own limit.
func LimitOf(name string) (Limit, error) {
	soft, hard, err := stage.Getrlimit(resources[name])
	if err != nil {
		return Limit{}, fmt.Errorf("read the limit %s: %w", name, err)
	}
	return Limit{name, soft, hard}, nil
}

// order writes the settings into a stage's order.
func (s *Settings) order(o *stage.Order) {
	o.Nice, o.OOMScoreAdj, o.NoNewPrivs = s.Nice, s.OOMScoreAdj, s.NoNewPrivs
	for _, l := range s.Limits {
		// The address space of a Go program, and so of the stage, is a gigabyte;
		// that of a shell is not.
		o.Limits = append(o.Limits, stage.Limit{Resource: resources[l.Name], Soft: l.Soft, Hard: l.Hard, Text: l.String(), Last: l.Name == "as"})
	}
}
