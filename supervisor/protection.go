package supervisor

import (
	"slices"
	"strings"

	"github.com/standbyd/standbyd/coord/shm"
	"github.com/standbyd/standbyd/internal/launch"
)

// protection is what guards the role right now. The workers say in their seats
// what they have; while none has joined, what the machine is known to have.
func (s *state) protection() Protection {
	p := Protection{Proof: s.policy.Proof, Fence: s.policy.Fence, Gate: s.control.gate, Missing: []string{}}
	if !launch.CanStage() {
		p.Missing = append(p.Missing, "launch stage")
	}
	way := func(name, what string, bit uint64, known bool) {
		seated, without := s.without(bit)
		switch {
		case seated == 0 && known, seated > 0 && len(without) == 0:
			p.Detect = append(p.Detect, name)
			return
		case seated > len(without):
			p.Detect = append(p.Detect, name) // for the others
			what += " in " + strings.Join(without, ", ")
		}
		if seated > 0 || !known {
			p.Missing = append(p.Missing, what)
		}
	}
	machine := detectWays()
	way("robust", "robust futexes", shm.WayRobust, slices.Contains(machine, "robust"))
	way("pidfd", "pidfd", shm.WayPidfd, slices.Contains(machine, "pidfd"))
	p.Detect = append(p.Detect, "tick")
	p.Missing = append(p.Missing, s.unpaced()...)
	return p
}

// without lists the workers that have joined, and those among them that lack
// one of the ways.
func (s *state) without(bit uint64) (seated int, names []string) {
	for i := range s.workers {
		if v := s.seatOf(i); v != nil {
			seated++
			if v.ways&bit == 0 {
				names = append(names, s.workers[i].name)
			}
		}
	}
	return seated, names
}

// unpaced says which ready workers do not run their waiting and beating threads
// as the role asks.
func (s *state) unpaced() []string {
	bit := map[Scheduling]uint64{SchedulingNice: shm.WayNice, SchedulingFIFO: shm.WayFIFO}[s.policy.Scheduling]
	if bit == 0 {
		return nil
	}
	var missing []string
	for i := range s.workers {
		if v := s.seatOf(i); v != nil && v.ready && v.ways&bit == 0 {
			missing = append(missing, "scheduling "+string(s.policy.Scheduling)+" in "+s.workers[i].name)
		}
	}
	return missing
}

// watchPace says once what status shows from now on.
func (t *turn) watchPace() {
	missing := t.s.unpaced()
	for _, m := range missing {
		if !slices.Contains(t.s.unhurried, m) {
			t.warn("%s is not permitted: the worker needs CAP_SYS_NICE, or a limit (%s) that allows it; it runs at normal priority", m,
				map[Scheduling]string{SchedulingNice: "RLIMIT_NICE", SchedulingFIFO: "RLIMIT_RTPRIO"}[t.s.policy.Scheduling])
		}
	}
	t.s.unhurried = missing
}
