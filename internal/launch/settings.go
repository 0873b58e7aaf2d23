//go:build unix

package launch

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
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
	soft, hard, err := getLimit(resources[name])
	if err != nil {
		return Limit{}, fmt.Errorf("read the limit %s: %w", name, err)
	}
	return Limit{name, soft, hard}, nil
}

// early is what may need the privileges that the change of the user takes away.
func (s *Settings) early() (step, on string, err error) {
	if s.OOMScoreAdj != nil {
		if err := setOOMScoreAdj(*s.OOMScoreAdj); err != nil {
			return "oom_score_adj", strconv.Itoa(*s.OOMScoreAdj), err
		}
	}
	if s.Nice != nil {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, *s.Nice); err != nil {
			return "nice", strconv.Itoa(*s.Nice), err
		}
	}
	for _, l := range s.Limits {
		set := l
		if l.Name == "as" {
			// Lowered last: the stage itself needs more than a program may want.
			old, err := LimitOf(l.Name)
			if err != nil {
				return "limit", l.String(), err
			}
			set = Limit{l.Name, old.Soft, max(old.Hard, l.Hard)}
		}
		if err := setLimit(resources[set.Name], set.Soft, set.Hard); err != nil {
			return "limit", l.String(), err
		}
	}
	return "", "", nil
}

// late is what would hinder the stage itself.
func (s *Settings) late() (step, on string, err error) {
	if s.NoNewPrivs {
		if err := setNoNewPrivs(); err != nil {
			return "no_new_privs", "", err
		}
	}
	for _, l := range s.Limits {
		if l.Name == "as" {
			if err := setLimit(resources[l.Name], l.Soft, l.Hard); err != nil {
				return "limit", l.String(), err
			}
		}
	}
	return "", "", nil
}

// pin keeps the stage on the thread that will exec: niceness and no_new_privs
// are a thread's own.
func pin() { runtime.LockOSThread() }

func (s *Settings) append(b []byte) []byte {
	b = appendInt(b, s.Nice)
	b = appendInt(b, s.OOMScoreAdj)
	b = appendBool(b, s.NoNewPrivs)
	b = binary.AppendUvarint(b, uint64(len(s.Limits)))
	for _, l := range s.Limits {
		b = appendStrings(b, []string{l.Name})
		b = binary.AppendUvarint(b, l.Soft)
		b = binary.AppendUvarint(b, l.Hard)
	}
	return b
}

func appendInt(b []byte, n *int) []byte {
	b = appendBool(b, n != nil)
	if n != nil {
		b = binary.AppendVarint(b, int64(*n))
	}
	return b
}

func (d *decoder) settings() (s Settings) {
	s.Nice, s.OOMScoreAdj, s.NoNewPrivs = d.optional(), d.optional(), d.uvarint() == 1
	for n := d.count(); n > 0; n-- {
		name := d.strings()
		l := Limit{Soft: d.uvarint(), Hard: d.uvarint()}
		if len(name) != 1 {
			d.b, d.bad = nil, true
			return s
		}
		l.Name = name[0]
		s.Limits = append(s.Limits, l)
	}
	return s
}

func (d *decoder) optional() *int {
	if d.uvarint() != 1 {
		return nil
	}
	n := int(d.varint())
	return &n
}

// adviseSetting says what is behind a setting that failed.
func adviseSetting(step string, err error) string {
	if err != syscall.EPERM && err != syscall.EACCES {
		return ""
	}
	switch step {
	case "nice":
		return "a lower niceness than the supervisor's needs root or CAP_SYS_NICE"
	case "oom_score_adj":
		return "a lower value than the supervisor's needs root or CAP_SYS_RESOURCE"
	case "limit":
		return "a limit above the supervisor's own hard one needs root or CAP_SYS_RESOURCE"
	}
	return ""
}
